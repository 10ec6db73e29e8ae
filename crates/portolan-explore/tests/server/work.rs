//! Fits, validation, advice, uploads and exports, compared with the library and its files.

use std::time::{Duration, Instant};

use portolan::{Context, Progress};
use portolan_explore::Explorer;
use portolan_io::covered::Counted;
use portolan_io::export::{GridRequest, MapRequest, draw_map};
use portolan_io::gis::Mask;
use portolan_io::picture::{Layer, Look, PictureKind, Typeface, factors_figure, spectrum_figure};
use portolan_io::{
    ReadOptions, WriteOptions, read_places, read_readings, write_model, write_predictions,
    write_readings,
};
use serde_json::{Value, json};

use crate::client::{ended, found, get, kriged, post, readings, send, serve, with_model};

fn start(server: &portolan_explore::Server, body: Value) -> Value {
    let answer = post(server, "/api/jobs", &body);
    assert_eq!(answer.status, 200, "{body}: {}", answer.error());
    answer.json()
}

#[test]
fn a_fit_in_the_page_is_the_fit_of_the_library() {
    let mut explorer = Explorer::empty();
    explorer.add_readings("survey", readings()).unwrap();
    let server = serve(explorer);
    let job = start(
        &server,
        json!({ "kind": "fit", "readings": 1, "method": "kriging", "settings": { "covariance": "matern32" } }),
    );
    assert_eq!(
        job["commands"][0],
        "portolan fit readings.npz -o model.npz --method kriging --set covariance=matern32"
    );
    let done = ended(&server, job["id"].as_u64().unwrap());
    assert_eq!((done["state"].as_str(), done["item"].as_u64()), (Some("done"), Some(2)));
    let settings = [("covariance".to_string(), "matern32".to_string())];
    let method = portolan::estimate::build("kriging", settings).unwrap();
    let model =
        method.fit(&readings(), &Context::default(), &Progress::silent()).unwrap().named("kriging");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.npz");
    write_model(&path, &model, false).unwrap();
    let answer = get(&server, "/api/items/2/export?what=model");
    assert!(answer.head.contains("filename=\"model.npz\""));
    assert_eq!(answer.body, std::fs::read(path).unwrap());
}

#[test]
fn exports_hold_the_bytes_of_the_writers() {
    let (server, model) = with_model();
    let folder = tempfile::tempdir().unwrap();
    for (query, ending, wish, bands) in [
        ("format=npz", "npz", GridRequest::default(), vec![0, 1, 2]),
        ("format=csv&bands=2,0", "csv", GridRequest::default(), vec![2, 0]),
        (
            "format=tif&cell-m=0.5",
            "tif",
            GridRequest { cell_m: Some(0.5), ..GridRequest::default() },
            vec![0, 1, 2],
        ),
        ("format=geojson&bands=1&mask=spread=3;hull", "geojson", GridRequest::default(), vec![1]),
        ("format=mat", "mat", GridRequest::default(), vec![0, 1, 2]),
    ] {
        let path = folder.path().join(format!("map.{ending}"));
        let rules: Vec<_> = match query.contains("mask") {
            true => ["spread=3", "hull"].map(|rule| rule.parse().unwrap()).to_vec(),
            false => Vec::new(),
        };
        let mask = Mask::new(&rules, model.sites(), None).unwrap();
        let grid = wish.on(&model).unwrap();
        let request = MapRequest {
            model: &model,
            grid,
            bands: &bands,
            mask: &mask,
            output: &path,
            f64: false,
            force: false,
        };
        draw_map(&request, &Progress::silent()).unwrap();
        let answer = get(&server, &format!("/api/items/2/export?what=map&{query}"));
        assert_eq!(answer.status, 200, "{query}: {}", String::from_utf8_lossy(&answer.body));
        assert!(answer.body == std::fs::read(&path).unwrap(), "{query}");
    }
    let path = folder.path().join("readings.csv");
    write_readings(&path, &readings(), &WriteOptions::default()).unwrap();
    let answer = get(&server, "/api/items/2/export?what=readings&format=csv");
    assert_eq!(answer.body, std::fs::read(path).unwrap());
    // A folder, or several files, come as one archive.
    for query in ["format=zarr", "format=png&bands=1"] {
        let answer = get(&server, &format!("/api/items/2/export?what=map&{query}"));
        assert_eq!((&answer.body[..2], answer.status), (&b"PK"[..], 200), "{query}");
    }
    let answer = get(&server, "/api/items/2/export?what=picture&format=svg&band=1&sensors=true");
    assert!(answer.body.starts_with(b"<svg"));
    let place = get(&server, "/api/items/2/export?what=place&x=3.5&y=2");
    let text = String::from_utf8(place.body).unwrap();
    assert!(
        text.starts_with("x_m,y_m,dbm_band0,spread_db_band0,")
            && text.lines().nth(1).unwrap().starts_with("3.5,2,")
    );
}

#[test]
fn coverage_bands_factors_and_places_are_the_writers() {
    let (server, model) = with_model();
    let export = |query: &str| {
        let answer = get(&server, &format!("/api/items/2/export?{query}"));
        assert_eq!(answer.status, 200, "{query}: {}", String::from_utf8_lossy(&answer.body));
        answer.body
    };
    let line = |query: &str| {
        let found = found(&server, &format!("/api/items/2/commands?{query}"));
        found["commands"].as_array().unwrap().last().unwrap().as_str().unwrap().to_string()
    };
    let quiet = Progress::silent();
    let grid = GridRequest { cell_m: Some(2.0), ..GridRequest::default() }.on(&model).unwrap();
    let counted = Counted::of_model(&model, grid, &[0, 2], -65.0, &quiet).unwrap();
    let query = "what=coverage&above=-65&bands=0,2&cell-m=2";
    assert_eq!(export(query), format!("{:#}\n", counted.json()).into_bytes());
    let same = "portolan coverage model.npz --above -65 --cell-m 2 --bands 0,2";
    assert_eq!(line(query), format!("{same} --json > coverage.json"));
    let scene = counted.scene(None, &Typeface::new()).unwrap();
    let svg = PictureKind::of_ending("svg").unwrap();
    assert_eq!(export(&format!("{query}&format=svg")), svg.bytes(&scene, None).unwrap().0);
    assert_eq!(line(&format!("{query}&format=svg")), format!("{same} -o coverage.svg"));

    let map = model.default_map(&quiet).unwrap();
    let offset = map.scale().link().offset();
    let scene = spectrum_figure(&map, &[0, 1, 2], None, None, offset, &Look::default()).unwrap();
    let query = "what=spectrum&format=svg";
    assert_eq!(export(query), svg.bytes(&scene, None).unwrap().0);
    assert_eq!(line(query), "portolan plot map.npz -o bands.svg --by-frequency");
    // Kriging knows no emitters.
    let answer = get(&server, "/api/items/2/export?what=factors");
    assert_eq!((answer.status, answer.error().contains("factors")), (400, true));

    let table = b"name,x_m,y_m\nwell,3.5,2\nmill,7,11.25\n";
    let upload = send(&server, "POST", "/api/uploads?name=places.csv", &[], table).json();
    let query = format!("what=places&upload={}&bands=1", upload["upload"]);
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("places.csv"), folder.path().join("answers.csv"));
    std::fs::write(&from, table).unwrap();
    let places = read_places(&from, None, 0.0, None).unwrap();
    let told = model.predict_bands(&places.sites, &[1], &quiet).unwrap();
    let about = (model.labels(), &[1][..], model.scale());
    write_predictions(&to, &places, &told, about, false).unwrap();
    assert_eq!(export(&query), std::fs::read(&to).unwrap());
    assert_eq!(line(&query), "portolan predict model.npz places.csv -o answers.csv --bands 1");
    for (query, message) in [
        ("what=places", "upload a table"),
        ("what=places&upload=9", "drop the file again"),
        ("what=coverage", "above"),
        ("what=coverage&above=-60&format=exe", "json, png"),
    ] {
        let answer = get(&server, &format!("/api/items/2/export?{query}"));
        assert!([400, 404].contains(&answer.status), "{query}: {}", answer.status);
        assert!(answer.error().contains(message), "{query}: {}", answer.error());
    }
}

#[test]
fn a_map_of_emitters_is_drawn_by_its_factors() {
    let factors = portolan::Factors {
        slf: ndarray::Array3::from_shape_fn((1, 6, 5), |(_, r, c)| 1.0 / (1.0 + (r + c) as f64)),
        psd: ndarray::array![[1e-6, 2e-6]],
    };
    let grid = portolan::Grid::new(6, 5, 1.0).unwrap();
    let map = portolan::RadioMap::factored(grid, factors, portolan::Scale::Absolute).unwrap();
    let mut explorer = Explorer::empty();
    explorer.add_map("city", map.clone()).unwrap();
    let server = serve(explorer);
    let scene = factors_figure(&map, None).unwrap();
    for (query, kind) in [("", PictureKind::Png), ("&format=svg", PictureKind::Svg)] {
        let answer = get(&server, &format!("/api/items/1/export?what=factors{query}"));
        assert_eq!(answer.body, kind.bytes(&scene, None).unwrap().0);
    }
}

#[test]
fn a_cancelled_fit_leaves_nothing() {
    let mut explorer = Explorer::empty();
    explorer.add_readings("survey", readings()).unwrap();
    let server = serve(explorer);
    let job = start(
        &server,
        json!({ "kind": "fit", "readings": 1, "method": "unn", "settings": { "iterations": "1000000" } }),
    );
    let id = job["id"].as_u64().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(found(&server, &format!("/api/jobs/{id}"))["state"], "running");
    let begun = Instant::now();
    assert_eq!(send(&server, "DELETE", &format!("/api/jobs/{id}"), &[], b"").status, 200);
    assert_eq!(ended(&server, id)["state"], "cancelled");
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(found(&server, "/api/state")["items"].as_array().unwrap().len(), 1);
}

#[test]
fn validation_and_advice_say_what_the_library_says() {
    let (server, model) = with_model();
    let job = start(
        &server,
        json!({ "kind": "validate", "readings": 1, "methods": ["kriging", "idw"], "folds": 4 }),
    );
    let done = ended(&server, job["id"].as_u64().unwrap());
    let rows = &done["validation"]["methods"];
    let all = readings();
    let dealt = portolan::estimate::folds(all.sites(), 4, portolan::estimate::Split::Random, 0);
    let method = portolan::estimate::Kriging::default();
    let known = portolan::estimate::validate(
        &all,
        &method,
        &dealt,
        &Context::default(),
        &Progress::silent(),
    )
    .unwrap();
    assert_eq!(rows[0]["rmse_db"].as_f64(), known.rmse_db());
    assert_eq!(rows[0]["coverage_90"].as_f64(), known.coverage_90());
    assert_eq!((rows[1]["method"].as_str(), rows[1]["coverage_90"].as_f64()), (Some("idw"), None));
    assert_eq!(rows[1]["errors"].as_array().unwrap().len(), 60);
    for (ending, start) in [("png", &b"\x89PNG"[..]), ("svg", b"<svg"), ("pdf", b"%PDF")] {
        let errors = get(&server, &format!("/api/jobs/{}/export?format={ending}", done["id"]));
        assert!(errors.body.starts_with(start), "{ending}");
    }
    let errors = get(&server, &format!("/api/jobs/{}/export?format=csv", done["id"]));
    assert_eq!((errors.status, errors.error().contains("png, svg or pdf")), (400, true));

    let job = start(&server, json!({ "kind": "advise", "item": 2, "count": 3 }));
    let done = ended(&server, job["id"].as_u64().unwrap());
    let process = portolan::advise::Process::from_report(model.report()).unwrap();
    let map = model.default_map(&Progress::silent()).unwrap();
    let known = portolan::advise::advise(model.sites(), &map, &[], process, 3, &Progress::silent())
        .unwrap();
    assert_eq!(done["advice"], portolan_io::json::advice_json(&known, map.grid()));
    let places = get(&server, &format!("/api/jobs/{}/export?format=svg", done["id"]));
    let drawn = portolan_io::picture::advice_figure(model.sites(), &map, &known).unwrap();
    assert_eq!(places.body, PictureKind::Svg.bytes(&drawn, None).unwrap().0);
    let table = get(&server, &format!("/api/jobs/{}/export?format=csv", done["id"]));
    assert_eq!(table.body, portolan_io::json::advice_csv(&known, map.grid()).into_bytes());
}

#[test]
fn a_dropped_table_is_previewed_and_read() {
    let server = serve(Explorer::empty());
    let table = b"easting,northing,s1,s2\n0,0,-60,-70\n5,1,-63,\n2,7,-71,-80\n8,8,-75,-81\n";
    let answer = send(&server, "POST", "/api/uploads?name=my%20walk.csv", &[], table);
    let seen = answer.json();
    assert_eq!(
        (seen["name"].as_str(), seen["lines"][0][0].as_str()),
        (Some("my walk.csv"), Some("easting"))
    );
    assert!(!seen["problem"].as_str().unwrap().is_empty());
    let words = json!({ "words": { "unit": "dbm", "columns": "x=easting,y=northing,bands=s*" } });
    let seen = post(&server, "/api/uploads/1/preview", &words).json();
    assert_eq!(
        (seen["problem"].clone(), seen["summary"]["sensors"].as_u64()),
        (Value::Null, Some(4))
    );
    assert_eq!(post(&server, "/api/uploads/1/open", &words).json()["item"], 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("walk.csv");
    std::fs::write(&path, table).unwrap();
    let mut options = ReadOptions::default();
    options.tell("unit", "dbm").unwrap();
    options.tell("columns", "x=easting,y=northing,bands=s*").unwrap();
    let known = read_readings(&path, &options).unwrap().value;
    let item = found(&server, "/api/items/1");
    assert_eq!(item["labels"], json!(["s1", "s2"]));
    assert_eq!(item["sensors"].as_u64(), Some(known.sensors() as u64));
    let answer = found(&server, "/api/items/1/commands?what=readings&format=csv");
    assert_eq!(
        answer["commands"][0],
        "portolan convert 'my walk.csv' readings-out.csv --columns 'x=easting,y=northing,bands=s*' --unit dbm"
    );
    for (name, body) in [
        ("x.csv", &b"hello"[..]),
        ("x.npz", b"PK\x03\x04 not really"),
        ("x.csv", b""),
        ("x.mat", b"\x00\x01"),
    ] {
        let seen = send(&server, "POST", &format!("/api/uploads?name={name}"), &[], body).json();
        assert!(seen["problem"].is_string(), "{name}");
        let id = seen["upload"].as_u64().unwrap();
        let answer = post(&server, &format!("/api/uploads/{id}/open"), &json!({}));
        assert_eq!(answer.status, 400);
        // What is wrong, and nothing about folders of this machine.
        assert!(
            answer.error().starts_with(name) && !answer.error().contains('/'),
            "{}",
            answer.error()
        );
    }
}

#[test]
fn dropped_files_keep_their_own_names() {
    let server = serve(Explorer::empty());
    let name = "Messung%20B%C3%BCro%20%232.csv";
    let table = b"x_m,y_m,dbm_2412MHz\n0,0,-60\n5,1,-63\n2,7,-71\n8,8,-75\n";
    let seen = send(&server, "POST", &format!("/api/uploads?name={name}"), &[], table).json();
    assert_eq!(seen["name"], "Messung Büro #2.csv");
    post(&server, "/api/uploads/1/open", &json!({}));
    assert_eq!(found(&server, "/api/items/1")["name"], "Messung Büro #2.csv");
    let told = found(&server, "/api/items/1/commands?what=readings&format=csv");
    assert_eq!(told["commands"][0], "portolan convert 'Messung Büro #2.csv' readings-out.csv");
    // What is wrong is said about the file as its owner calls it.
    let seen =
        send(&server, "POST", "/api/uploads?name=zwei%20W%C3%B6rter.csv", &[], b"hello").json();
    let problem = seen["problem"].as_str().unwrap().to_string();
    assert!(problem.starts_with("zwei Wörter.csv: "), "{problem}");
    // A name that begins with a dash is no option.
    send(&server, "POST", "/api/uploads?name=-rf.csv", &[], table);
    let item = post(&server, "/api/uploads/3/open", &json!({})).json()["item"].clone();
    let told = found(&server, &format!("/api/items/{item}/commands?what=readings&format=csv"));
    assert_eq!(told["commands"][0], "portolan convert ./-rf.csv readings-out.csv");
}

#[test]
fn levels_that_are_codes_are_pointed_out() {
    let server = serve(Explorer::empty());
    let table = b"x_m,y_m,dbm_2412MHz\n0,0,-60\n5,1,100\n2,7,-71\n8,8,-75\n";
    let seen = send(&server, "POST", "/api/uploads?name=x.csv", &[], table).json();
    assert!(seen["warning"].as_str().unwrap().contains("100 dBm"), "{seen}");
    let words = json!({ "words": { "not-heard": "100" } });
    assert!(post(&server, "/api/uploads/1/preview", &words).json()["warning"].is_null());
}

/// The lines that a query is told.
fn lines(server: &portolan_explore::Server, query: &str) -> Vec<String> {
    let told = found(server, &format!("/api/items/1/commands?{query}"));
    let lines = told["commands"].as_array().unwrap();
    lines.iter().map(|line| line.as_str().unwrap().to_string()).collect()
}

#[test]
fn what_was_said_about_a_map_is_in_its_commands() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("town.npy");
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4, 1), }";
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").bytes());
    bytes.extend((0..12).flat_map(|cell| (-60.0 - f64::from(cell)).to_le_bytes()));
    std::fs::write(&path, bytes).unwrap();
    let words: Vec<(String, String)> =
        [("unit", "dbm"), ("cell-m", "2")].map(|(a, b)| (a.into(), b.into())).to_vec();
    let mut explorer = Explorer::empty();
    explorer.add_file(&path, &words).unwrap();
    let server = serve(explorer);
    let file = path.display();
    let said = "--unit dbm --cell-m 2";
    assert_eq!(
        lines(&server, "what=map&format=tif"),
        [format!("portolan convert {file} map.tif {said}")]
    );
    assert_eq!(
        lines(&server, "what=picture&colours=magma&range=-80,-50"),
        [format!(
            "portolan plot {file} -o picture.png --band 0 --colours magma --range -80,-50 {said}"
        )]
    );
    // `coverage` takes no such words.
    assert_eq!(
        lines(&server, "what=coverage&above=-65"),
        [
            format!("portolan convert {file} converted.npz {said}"),
            "portolan coverage converted.npz --above -65 --json > coverage.json".to_string(),
        ]
    );
}

#[test]
fn a_model_from_a_file_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mein modell.npz");
    portolan_io::write_model(&path, &kriged(&readings()), false).unwrap();
    let mut explorer = Explorer::empty();
    explorer.add_file(&path, &[]).unwrap();
    let server = serve(explorer);
    let told = found(&server, "/api/items/1/commands?what=model");
    assert_eq!(told["commands"], json!([format!("cp '{}' model.npz", path.display())]));
    assert_eq!(told["same_bytes"], false);
    assert_eq!(found(&server, "/api/items/1/commands?what=map")["same_bytes"], true);
}

#[test]
fn pictures_have_the_colours_that_are_asked_for() {
    let (server, model) = with_model();
    let map = model.default_map(&Progress::silent()).unwrap();
    let look = Look {
        colours: portolan_io::picture::ColourMap::Cividis,
        range: Some((-90.0, -40.0)),
        ..Look::default()
    };
    let offset = map.scale().link().offset();
    let figure = portolan_io::picture::MapFigure {
        map: &map,
        truth: None,
        readings: None,
        band: 1,
        title: None,
        offset,
        look: &look,
    };
    let scene = portolan_io::picture::map_figure(&figure).unwrap();
    let svg = PictureKind::of_ending("svg").unwrap();
    let query = "what=picture&format=svg&band=1&colours=cividis&range=-90,-40";
    let answer = get(&server, &format!("/api/items/2/export?{query}"));
    assert_eq!(answer.body, svg.bytes(&scene, None).unwrap().0);
    // Steps, lines, a heading, and the spread alone.
    let look = Look {
        layer: Layer::Spread,
        levels: vec![1.0, 2.0],
        contours: vec![1.5],
        ..Look::default()
    };
    let scene = portolan_io::picture::map_figure(&portolan_io::picture::MapFigure {
        title: Some("-Hall 1"),
        look: &look,
        ..figure
    });
    let query =
        "what=picture&format=svg&band=1&spread=true&levels=1,2&contours=1.5&title=-Hall%201";
    let answer = get(&server, &format!("/api/items/2/export?{query}"));
    assert_eq!(answer.body, svg.bytes(&scene.unwrap(), None).unwrap().0);
    let told = found(&server, &format!("/api/items/2/commands?{query}"));
    assert_eq!(
        told["commands"][1],
        "portolan plot map.npz -o picture.svg --band 1 --spread --levels 1,2 --contours 1.5 \
         '--title=-Hall 1'"
    );
    let long = format!("title={}", "x".repeat(201));
    for wrong in [
        "colours=jet",
        "range=-40,-90",
        "range=-40",
        "format=exe",
        "levels=2,1",
        "contours=x",
        "spread=true&above=-60",
        "levels=1,2&range=0,1",
        &long,
    ] {
        for way in ["commands", "export"] {
            let answer = get(&server, &format!("/api/items/2/{way}?what=picture&{wrong}"));
            assert_eq!((answer.status, answer.error().contains("expected")), (400, true));
        }
    }
}

#[test]
fn an_item_can_be_closed() {
    let (server, _) = with_model();
    let job = start(&server, json!({ "kind": "advise", "item": 2, "count": 2 }));
    ended(&server, job["id"].as_u64().unwrap());
    let close = |id: u32| send(&server, "DELETE", &format!("/api/items/{id}"), &[], b"");
    assert_eq!(close(2).json()["closed"], json!([2]));
    assert_eq!(
        (get(&server, "/api/items/2").status, get(&server, "/api/jobs/1").status),
        (404, 404)
    );
    assert_eq!(close(2).status, 404);
    // Closing readings also closes their fits, and what is still being fitted.
    let fit = |settings: Value| json!({ "kind": "fit", "readings": 1, "method": "unn", "settings": settings });
    start(&server, fit(json!({ "iterations": 900_000 })));
    let job = start(&server, json!({ "kind": "fit", "readings": 1, "method": "idw" }));
    let fitted = ended(&server, job["id"].as_u64().unwrap())["item"].clone();
    assert_eq!(close(1).json()["closed"], json!([1, fitted]));
    let state = found(&server, "/api/state");
    assert_eq!((&state["items"], &state["jobs"]), (&json!([]), &json!([])));
}
