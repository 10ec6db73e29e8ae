//! Containers on SQLite as records: the points of a GeoPackage (OGC 12-128r17) and the packets of a
//! log of Kismet (kismetwireless.net/docs/dev/kismetdb).

use portolan::Crs;

use super::sqlite::{Database, SqlTable, Value, no_tables};
use super::{Input, OwnCrs, Records};
use crate::error::{Check, Problem, quoted};
use crate::table::is_position;

pub(super) fn read(input: &mut Input<'_>) -> Check<Records> {
    let log = input.path.with_file_name(format!(
        "{}-wal",
        input.path.file_name().unwrap_or_default().to_string_lossy()
    ));
    let bytes = input.bytes()?;
    let database = Database::open(&bytes)?;
    let tables = database.tables()?;
    let named = |name: &str| tables.iter().find(|table| table.name.eq_ignore_ascii_case(name));
    let mut records = match (named("gpkg_geometry_columns"), named("packets")) {
        (Some(columns), _) => points(&database, &tables, columns, bytes.len(), input.options.crs)?,
        (None, Some(packets)) => frames(&database, packets, bytes.len())?,
        _ => return Err(no_tables(&tables, "points (GeoPackage) or packets (Kismet)")),
    };
    if log.metadata().is_ok_and(|found| found.len() > 0) {
        records.notes.push(format!(
            "{} holds changes that are not read: close the program that writes the file",
            quoted(&log.file_name().unwrap_or_default().to_string_lossy())
        ));
    }
    Ok(records)
}

/// The first layer with points.
fn points(
    database: &Database<'_>,
    tables: &[SqlTable],
    columns: &SqlTable,
    bytes: usize,
    asked: Option<Crs>,
) -> Check<Records> {
    let (Some(table), Some(column), Some(system)) =
        (columns.column("table_name"), columns.column("column_name"), columns.column("srs_id"))
    else {
        return Err(Problem::new("damaged GeoPackage: gpkg_geometry_columns lacks its columns"));
    };
    let mut layers: Vec<[String; 3]> = Vec::new();
    database.rows(columns, |row| {
        layers.push(
            [table, column, system].map(|at| row.get(at).map(Value::text).unwrap_or_default()),
        );
        Ok(())
    })?;
    let [layer, geometry, system] =
        layers.first().ok_or_else(|| Problem::new("a GeoPackage without a layer of points"))?;
    let lacks = || Problem::new(format!("damaged GeoPackage: no layer {}", quoted(layer)));
    let table = tables.iter().find(|table| table.name == *layer).ok_or_else(lacks)?;
    let geometry = table.column(geometry).ok_or_else(lacks)?;
    let own = match (own_crs(database, tables, system), asked) {
        (Ok(own), _) => own,
        (Err(_), Some(crs)) => OwnCrs::Metres(crs),
        (Err(problem), None) => return Err(problem),
    };
    let mut records = Records::new("row", bytes);
    let place = match own {
        OwnCrs::Degrees => ["lon", "lat"],
        OwnCrs::Metres(crs) => {
            records.crs = Some(crs);
            ["x_m", "y_m"]
        }
    };
    if layers.len() > 1 {
        let count = layers.len();
        records.notes.push(format!("the first of {count} layers, {}, is read", quoted(layer)));
    }
    let mut without = 0;
    database.rows(table, |row| {
        let point = match row.get(geometry) {
            Some(Value::Blob(blob)) => point(blob)?,
            _ => None,
        };
        let Some([x, y]) = point else {
            without += 1;
            return Ok(());
        };
        records.begin();
        records.put(place[0], x.to_string())?;
        records.put(place[1], y.to_string())?;
        for (at, (name, value)) in table.columns.iter().zip(row).enumerate() {
            if at != geometry && !is_position(name) {
                records.put(name, value.text())?;
            }
        }
        Ok(())
    })?;
    if without > 0 {
        records.notes.push(format!("{without} row(s) without a point: left out"));
    }
    Ok(records)
}

/// The system of a layer, by its own code or the one that the file's list gives it.
fn own_crs(database: &Database<'_>, tables: &[SqlTable], id: &str) -> Check<OwnCrs> {
    let list = tables.iter().find(|table| table.name == "gpkg_spatial_ref_sys");
    let mut code = id.to_string();
    if let Some(list) = list
        && let (Some(own), Some(name), Some(number)) = (
            list.column("srs_id"),
            list.column("organization"),
            list.column("organization_coordsys_id"),
        )
    {
        database.rows(list, |row| {
            let text = |at: usize| row.get(at).map(Value::text).unwrap_or_default();
            if text(own) == id && text(name).eq_ignore_ascii_case("epsg") {
                code = text(number);
            }
            Ok(())
        })?;
    }
    OwnCrs::of_name(&format!("EPSG:{code}"))
}

/// The point in a blob of a GeoPackage: a header, then well-known binary. None where it is empty.
fn point(blob: &[u8]) -> Check<Option<[f64; 2]>> {
    let damaged = || Problem::new("damaged GeoPackage: a point is cut short");
    let flags = match blob {
        [b'G', b'P', _, flags, ..] => *flags,
        _ => return Err(Problem::new("damaged GeoPackage: a point without its header")),
    };
    // Bits 1 to 3 say how large the envelope is, bit 4 that there is no point.
    let envelope = [0, 32, 48, 48, 64].get(usize::from(flags >> 1 & 7)).ok_or_else(damaged)?;
    if flags & 0x10 != 0 {
        return Ok(None);
    }
    let body = blob.get(8 + envelope..).ok_or_else(damaged)?;
    let field = |at: usize, length: usize| body.get(at..at + length).ok_or_else(damaged);
    let little = field(0, 1)?[0] == 1;
    let kind: [u8; 4] = field(1, 4)?.try_into().unwrap_or_default();
    let kind = if little { u32::from_le_bytes(kind) } else { u32::from_be_bytes(kind) };
    if !matches!(kind % 1000, 1) || kind > 4000 {
        return Err(Problem::new(format!("a geometry of kind {kind}, expected points (kind 1)")));
    }
    let number = |at: usize| -> Check<f64> {
        let bytes: [u8; 8] = field(at, 8)?.try_into().unwrap_or_default();
        Ok(if little { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) })
    };
    let (x, y) = (number(5)?, number(13)?);
    Ok((x.is_finite() && y.is_finite()).then_some([x, y]))
}

/// Columns of `packets` that are read, and how the table reader calls them.
const PACKETS: [(&str, &str); 6] = [
    ("lat", "lat"),
    ("lon", "lon"),
    ("signal", "signal_dbm"),
    ("sourcemac", "bssid"),
    ("frequency", "freq_khz"),
    ("ts_sec", "time"),
];

/// The packets of Kismet. Places lie in whole numbers in the logs of before 2019; a signal of 0 is
/// unknown.
fn frames(database: &Database<'_>, packets: &SqlTable, bytes: usize) -> Check<Records> {
    let mut columns = Vec::new();
    for (own, name) in PACKETS {
        let at = packets.column(own).ok_or_else(|| {
            Problem::new(format!("damaged log of Kismet: packets without {}", quoted(own)))
        })?;
        columns.push((at, name));
    }
    let mut records = Records::new("packet", bytes);
    let mut without = 0;
    database.rows(packets, |row| {
        let text = |at: usize| row.get(at).map(Value::text).unwrap_or_default();
        let zero = |at: usize| text(at).parse::<f64>().is_ok_and(|number| number == 0.0);
        if zero(columns[2].0) || (zero(columns[0].0) && zero(columns[1].0)) {
            without += 1;
            return Ok(());
        }
        records.begin();
        for (at, name) in &columns {
            let whole = matches!(row.get(*at), Some(Value::Integer(n)) if n.abs() > 360);
            let text = match (*name, row.get(*at)) {
                ("lat" | "lon", Some(Value::Integer(n))) if whole => (*n as f64 / 1e5).to_string(),
                _ => text(*at),
            };
            records.put(name, text)?;
        }
        Ok(())
    })?;
    if without > 0 {
        records.notes.push(format!("{without} packet(s) without a position or a level: left out"));
    }
    Ok(records)
}
