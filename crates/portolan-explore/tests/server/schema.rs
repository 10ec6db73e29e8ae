//! The answers of the API are what its description says: a checker of the few words of JSON Schema
//! that the description uses, and a walk through all answers.

use std::collections::BTreeSet;

use portolan_explore::{Explorer, FirstFit, Server};
use serde_json::{Value, json};

use crate::client::{Answer, ended, get, lopsided, post, readings, send, serve};

/// Words that say nothing about values.
const NOTES: [&str; 2] = ["description", "default"];

/// What is wrong with a value, and where.
fn wrong(all: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let shown: String = value.to_string().chars().take(80).collect();
    let say = |what: String| Err(format!("{at}: {what}, found {shown}"));
    for (word, said) in schema.as_object().unwrap() {
        match word.as_str() {
            "$ref" => {
                let pointer = said.as_str().unwrap().trim_start_matches('#');
                wrong(all, all.pointer(pointer).expect(pointer), value, at)?;
            }
            "oneOf" => {
                let tried = said.as_array().unwrap().iter().map(|one| wrong(all, one, value, at));
                let (fits, misfits): (Vec<_>, Vec<_>) = tried.partition(Result::is_ok);
                if fits.len() != 1 {
                    return say(format!("{} of {:?} fit", fits.len(), misfits));
                }
            }
            "type" if !is_of(said, value) => return say(format!("expected {said}")),
            "const" if value != said => return say(format!("expected {said}")),
            "enum" if !value.is_null() && !said.as_array().unwrap().contains(value) => {
                return say(format!("expected one of {said}"));
            }
            "minimum" if value.as_f64() < said.as_f64() && value.is_number() => {
                return say(format!("expected at least {said}"));
            }
            "maximum" if value.as_f64() > said.as_f64() => {
                return say(format!("expected at most {said}"));
            }
            "minItems" | "maxItems" => {
                let count = value.as_array().map(|list| list.len() as u64);
                let (count, said) = (count.or(said.as_u64()), said.as_u64());
                if if word == "minItems" { count < said } else { count > said } {
                    return say(format!("expected {word} {said:?}"));
                }
            }
            "items" => {
                for (i, one) in value.as_array().into_iter().flatten().enumerate() {
                    wrong(all, said, one, &format!("{at}[{i}]"))?;
                }
            }
            "required" if value.is_object() => {
                for name in said.as_array().unwrap() {
                    if value.get(name.as_str().unwrap()).is_none() {
                        return say(format!("{name} is missing"));
                    }
                }
            }
            "properties" | "additionalProperties" => {
                let own = schema.get("properties");
                for (name, one) in value.as_object().into_iter().flatten() {
                    let known = own.and_then(|own| own.get(name));
                    let at = format!("{at}.{name}");
                    match (word.as_str(), known) {
                        ("properties", Some(known)) => wrong(all, known, one, &at)?,
                        ("additionalProperties", None) if *said == json!(false) => {
                            return Err(format!("{at}: is not described"));
                        }
                        ("additionalProperties", None) => wrong(all, said, one, &at)?,
                        _ => {}
                    }
                }
            }
            "type" | "const" | "enum" | "minimum" | "maximum" | "required" => {}
            note if NOTES.contains(&note) => {}
            other => panic!("{at}: the checker does not know {other}"),
        }
    }
    Ok(())
}

fn is_of(kinds: &Value, value: &Value) -> bool {
    let one = |kind: &Value| match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("there is no type {other}"),
    };
    kinds.as_array().map_or_else(|| one(kinds), |kinds| kinds.iter().any(one))
}

/// Checks answers of a server, and remembers which kinds of answers it has seen.
struct Walk {
    server: Server,
    described: Value,
    seen: BTreeSet<(String, String)>,
}

impl Walk {
    fn see(&mut self, verb: &str, path: &str, ask: &str, answer: &Answer) -> Value {
        let own = &self.described["paths"][path][verb]["responses"];
        let told = answer.json();
        let schema = if answer.status == 200 {
            self.seen.insert((verb.into(), path.into()));
            &own["200"]["content"]["application/json"]["schema"]
        } else {
            let refused = own["default"]["$ref"].as_str().unwrap().trim_start_matches('#');
            &self.described.pointer(refused).unwrap()["content"]["application/json"]["schema"]
        };
        assert!(schema.is_object(), "{verb} {path} is not described");
        if let Err(what) = wrong(&self.described, schema, &told, "answer") {
            panic!("{verb} {ask}: {what}");
        }
        told
    }

    fn get(&mut self, path: &str, ask: &str) -> Value {
        let answer = get(&self.server, ask);
        self.see("get", path, ask, &answer)
    }

    fn post(&mut self, path: &str, ask: &str, body: &Value) -> Value {
        let answer = post(&self.server, ask, body);
        self.see("post", path, ask, &answer)
    }

    fn delete(&mut self, path: &str, ask: &str) -> Value {
        let answer = send(&self.server, "DELETE", ask, &[], b"");
        self.see("delete", path, ask, &answer)
    }

    fn upload(&mut self, name: &str, bytes: &[u8]) -> Value {
        let ask = format!("/api/uploads?name={name}");
        let answer = send(&self.server, "POST", &ask, &[], bytes);
        self.see("post", "/api/uploads", &ask, &answer)
    }

    /// Starts a job, sees it, and waits for its end.
    fn job(&mut self, body: &Value) -> Value {
        let id = self.post("/api/jobs", "/api/jobs", body)["id"].as_u64().unwrap();
        let one = "/api/jobs/{id}";
        self.get(one, &format!("/api/jobs/{id}"));
        ended(&self.server, id);
        self.get(one, &format!("/api/jobs/{id}"))
    }
}

#[test]
fn answers_are_what_the_description_says() {
    let mut explorer = Explorer::demo().unwrap();
    explorer.add_readings("survey", readings()).unwrap();
    explorer.add_map("city", lopsided()).unwrap();
    explorer.skip("odd.csv", "expected a header");
    explorer.fit_first(FirstFit { method: "field".into(), ..FirstFit::default() }).unwrap();
    let server = serve(explorer);
    let described = get(&server, "/api/openapi.json").json();
    let mut walk = Walk { server, described, seen: BTreeSet::new() };
    walk.get("/api/state", "/api/state");
    for job in [1, 2] {
        ended(&walk.server, job);
    }
    let fit = json!({ "kind": "fit", "readings": 2, "method": "kriging", "settings": { "covariance": "matern32" } });
    let fitted = walk.job(&fit)["item"].clone();
    walk.job(&json!({ "kind": "fit", "readings": 2, "method": "btd" }));
    walk.job(
        &json!({ "kind": "validate", "readings": 2, "methods": ["kriging", "btd"], "folds": 3 }),
    );
    walk.job(&json!({ "kind": "advise", "item": fitted, "count": 2 }));
    walk.post("/api/jobs", "/api/jobs", &json!({ "kind": "nothing" }));
    for path in ["/api/state", "/api/methods", "/api/palettes", "/api/openapi.json"] {
        walk.get(path, path);
    }
    for item in 1..=6 {
        let own = format!("/api/items/{item}");
        walk.get("/api/items/{id}", &own);
        walk.get("/api/items/{id}/at", &format!("{own}/at?x=7&y=11"));
        walk.get("/api/items/{id}/places", &format!("{own}/places"));
        walk.get("/api/items/{id}/sensor", &format!("{own}/sensor?n=5"));
        walk.get("/api/items/{id}/commands", &format!("{own}/commands"));
    }
    let table = b"lat,lon,time,dbm_2412MHz,dbm_2437MHz\n48,11,2024-05-01T10:00:00Z,-60,-70\n\
                  48.0001,11,2024-05-01T10:01:00Z,-63,100\n48.0001,11.0001,2024-05-01T10:02:00Z,,-80\n";
    walk.upload("odd.csv", b"hello");
    walk.upload("model.npz", &get(&walk.server, "/api/items/4/export?what=model").body);
    walk.upload("map.npz", &get(&walk.server, "/api/items/4/export?what=map").body);
    let id = walk.upload("walk.csv", table)["upload"].clone();
    let words = json!({ "words": { "not-heard": 100 } });
    let preview = format!("/api/uploads/{id}/preview");
    walk.post("/api/uploads/{id}/preview", &preview, &words);
    let open = format!("/api/uploads/{id}/open");
    let opened = walk.post("/api/uploads/{id}/open", &open, &words)["item"].clone();
    walk.get("/api/items/{id}", &format!("/api/items/{opened}"));
    walk.get("/api/items/{id}/at", &format!("/api/items/{opened}/at?x=7&y=11"));
    walk.get("/api/items/{id}/sensor", &format!("/api/items/{opened}/sensor?n=1"));
    walk.get("/api/items/{id}/places", &format!("/api/items/{opened}/places"));
    walk.delete("/api/jobs/{id}", "/api/jobs/1");
    walk.delete("/api/items/{id}", "/api/items/2");
    walk.delete("/api/items/{id}", "/api/items/2");
    // Every answer in JSON was seen.
    for (path, verbs) in walk.described["paths"].as_object().unwrap() {
        for (verb, said) in verbs.as_object().unwrap().iter().filter(|(v, _)| *v != "parameters") {
            let json = said["responses"]["200"]["content"].get("application/json").is_some();
            let seen = walk.seen.contains(&(verb.clone(), path.clone()));
            assert_eq!(json, seen, "{verb} {path}");
        }
    }
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let all = json!({ "x": { "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": { "a": { "type": ["integer", "null"], "minimum": 2 }, "b": { "oneOf": [{ "const": 1 }, { "type": "string", "enum": ["y"] }] },
            "c": { "type": "array", "items": { "type": "number" }, "minItems": 1, "maxItems": 2 } } } });
    let is = |value: Value| wrong(&all, &json!({ "$ref": "#/x" }), &value, "it");
    for good in [
        json!({ "a": 2 }),
        json!({ "a": null, "b": 1, "c": [1, 2.5] }),
        json!({ "a": 3, "b": "y" }),
    ] {
        assert_eq!(is(good), Ok(()));
    }
    for bad in [
        json!([]),
        json!({}),
        json!({ "a": 1 }),
        json!({ "a": 2.5 }),
        json!({ "a": 2, "d": 1 }),
        json!({ "a": 2, "b": 2 }),
        json!({ "a": 2, "b": "z" }),
        json!({ "a": 2, "c": [] }),
        json!({ "a": 2, "c": [1, 2, 3] }),
        json!({ "a": 2, "c": ["x"] }),
    ] {
        assert!(is(bad.clone()).is_err(), "{bad}");
    }
}
