//! Which lines of a table are wanted: `floor = 2`, `technology = 'LTE' and rsrp > -120`.

use csv::StringRecord;

use crate::error::{Check, Problem, quoted};

/// A condition on the fields of a line, in the words of `--where`: comparisons (=, !=, <, <=, >, >=)
/// of a column and a value, `not`, `and`, `or`, parentheses. A column whose name is more than one
/// word stands in double quotes, a text in single ones. Numbers are compared as numbers, texts
/// without regard to case.
///
/// ```
/// use portolan_io::RowFilter;
/// let filter = RowFilter::parse("technology = 'LTE' and (floor = 2 or not floor < 7)")?;
/// assert_eq!(filter.to_string(), "technology = 'LTE' and (floor = 2 or not floor < 7)");
/// assert!(RowFilter::parse("floor =").is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RowFilter {
    text: String,
    root: Node,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Either(Vec<Node>),
    All(Vec<Node>),
    Not(Box<Node>),
    Compare { column: String, compare: Compare, value: String },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Compare {
    Equal,
    Other,
    Less,
    AtMost,
    More,
    AtLeast,
}

const SIGNS: [(&str, Compare); 6] = [
    ("!=", Compare::Other),
    ("<=", Compare::AtMost),
    (">=", Compare::AtLeast),
    ("=", Compare::Equal),
    ("<", Compare::Less),
    (">", Compare::More),
];

/// Deeper than this no condition is nested.
const DEEPEST: usize = 50;

impl std::fmt::Display for RowFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl RowFilter {
    /// Reads a condition.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words = words(text)?;
        let mut parser = Parser { words: &words, at: 0, depth: 0 };
        let root = parser.either()?;
        match parser.words.get(parser.at) {
            None => Ok(Self { text: text.trim().to_string(), root }),
            Some(word) => Err(format!("'{}': expected and, or, or the end", word.text)),
        }
    }

    /// The condition on lines below a header.
    pub(crate) fn on(&self, header: &[&str]) -> Check<LineFilter> {
        Ok(LineFilter(self.root.on(header)?))
    }
}

/// A condition whose columns are known.
pub(crate) struct LineFilter(Known);

enum Known {
    Either(Vec<Known>),
    All(Vec<Known>),
    Not(Box<Known>),
    Compare { column: usize, compare: Compare, value: String, number: Option<f64> },
}

impl LineFilter {
    pub fn keeps(&self, record: &StringRecord) -> bool {
        self.0.keeps(record)
    }
}

impl Node {
    fn on(&self, header: &[&str]) -> Check<Known> {
        let all = |nodes: &[Node]| nodes.iter().map(|n| n.on(header)).collect::<Check<Vec<_>>>();
        Ok(match self {
            Node::Either(nodes) => Known::Either(all(nodes)?),
            Node::All(nodes) => Known::All(all(nodes)?),
            Node::Not(node) => Known::Not(Box::new(node.on(header)?)),
            Node::Compare { column, compare, value } => {
                let found = header.iter().position(|n| n.trim().eq_ignore_ascii_case(column));
                let column = found.ok_or_else(|| {
                    let seen: Vec<String> = header.iter().take(12).map(|n| quoted(n)).collect();
                    let column = quoted(column);
                    Problem::new(format!(
                        "--where names {column}, which is not there; columns seen: {}",
                        seen.join(", ")
                    ))
                })?;
                let number = value.parse().ok();
                Known::Compare { column, compare: *compare, value: value.clone(), number }
            }
        })
    }
}

impl Known {
    fn keeps(&self, record: &StringRecord) -> bool {
        match self {
            Known::Either(nodes) => nodes.iter().any(|node| node.keeps(record)),
            Known::All(nodes) => nodes.iter().all(|node| node.keeps(record)),
            Known::Not(node) => !node.keeps(record),
            Known::Compare { column, compare, value, number } => {
                let field = record.get(*column).unwrap_or_default().trim();
                let order = match (field.parse::<f64>(), number) {
                    (Ok(own), Some(number)) => own.partial_cmp(number),
                    _ => Some(field.to_lowercase().cmp(&value.to_lowercase())),
                };
                let Some(order) = order else { return false };
                match compare {
                    Compare::Equal => order.is_eq(),
                    Compare::Other => order.is_ne(),
                    Compare::Less => order.is_lt(),
                    Compare::AtMost => order.is_le(),
                    Compare::More => order.is_gt(),
                    Compare::AtLeast => order.is_ge(),
                }
            }
        }
    }
}

#[derive(Debug)]
struct Word {
    text: String,
    /// In quotes: no word of the grammar.
    quoted: bool,
}

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, length, quoted) = match first {
            '\'' | '"' => {
                let end =
                    rest[1..].find(first).ok_or_else(|| format!("{rest}: a quote is open"))?;
                (&rest[1..=end], end + 2, true)
            }
            '(' | ')' => (&rest[..1], 1, false),
            _ => match SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
                Some((sign, _)) => (&rest[..sign.len()], sign.len(), false),
                None => {
                    let end = rest.find(|c: char| c.is_whitespace() || "()'\"=<>!".contains(c));
                    let end = end.unwrap_or(rest.len());
                    if end == 0 {
                        return Err(format!("'{rest}': expected a column, such as floor = 2"));
                    }
                    (&rest[..end], end, false)
                }
            },
        };
        words.push(Word { text: word.to_string(), quoted });
        rest = rest[length..].trim_start();
    }
    Ok(words)
}

struct Parser<'a> {
    words: &'a [Word],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn takes(&mut self, word: &str) -> bool {
        let found = self.words.get(self.at);
        let same = found.is_some_and(|w| !w.quoted && w.text.eq_ignore_ascii_case(word));
        self.at += usize::from(same);
        same
    }

    fn either(&mut self) -> Result<Node, String> {
        let mut nodes = vec![self.all()?];
        while self.takes("or") {
            nodes.push(self.all()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Either(nodes) })
    }

    fn all(&mut self) -> Result<Node, String> {
        let mut nodes = vec![self.one()?];
        while self.takes("and") {
            nodes.push(self.one()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::All(nodes) })
    }

    fn one(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("a condition that is nested so deep is not read".into());
        }
        let node = if self.takes("not") {
            Node::Not(Box::new(self.one()?))
        } else if self.takes("(") {
            let node = self.either()?;
            if !self.takes(")") {
                return Err("expected )".into());
            }
            node
        } else {
            let column = self.word("a column, such as floor = 2")?;
            let sign = self.word("=, !=, <, <=, > or >=")?;
            let compare = SIGNS.iter().find(|(known, _)| *known == sign);
            let (_, compare) =
                compare.ok_or_else(|| format!("'{sign}': expected =, !=, <, <=, > or >="))?;
            Node::Compare { column, compare: *compare, value: self.word("a value")? }
        };
        self.depth -= 1;
        Ok(node)
    }

    fn word(&mut self, expected: &str) -> Result<String, String> {
        let word = self.words.get(self.at).ok_or_else(|| format!("expected {expected}"))?;
        self.at += 1;
        Ok(word.text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Vec<usize> {
        let header = ["floor", "Tech", "cell name", "dbm"];
        let filter = RowFilter::parse(text).unwrap().on(&header).unwrap();
        let rows = [["1", "LTE", "a b", "-80"], ["2", "lte", "c", "-95.5"], ["10", "GSM", "d", ""]];
        let rows = rows.map(|row| StringRecord::from(row.to_vec()));
        (0..3).filter(|&row| filter.keeps(&rows[row])).collect()
    }

    #[test]
    fn conditions_keep_what_they_say() {
        for (text, rows) in [
            ("floor = 2", vec![1]),
            ("FLOOR=2.0", vec![1]),
            ("floor < 10", vec![0, 1]),
            ("tech = LTE", vec![0, 1]),
            ("tech != 'lte'", vec![2]),
            ("\"cell name\" = 'a b'", vec![0]),
            ("dbm >= -90", vec![0]),
            ("dbm = ''", vec![2]),
            ("tech = lte and floor > 1", vec![1]),
            ("floor = 1 or floor = 10", vec![0, 2]),
            ("not (floor = 1 or floor = 10)", vec![1]),
            ("floor = 1 or floor = 2 and tech = GSM", vec![0]),
        ] {
            assert_eq!(kept(text), rows, "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in ["", "floor", "floor =", "floor = 1 2", "(floor = 1", "= 3", "a = 'b", "a ~ b"]
        {
            assert!(RowFilter::parse(text).is_err(), "{text}");
        }
        assert!(RowFilter::parse(&"(".repeat(100_000)).is_err());
        let missing = RowFilter::parse("storey = 1").unwrap().on(&["floor"]).err().unwrap();
        assert!(
            missing.to_string().contains("'storey'") && missing.to_string().contains("'floor'")
        );
    }
}
