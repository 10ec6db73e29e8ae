//! Tiles hold what the model predicts.

use portolan::{Model, Progress, Region, Site};
use portolan_explore::Explorer;

use crate::client::{get, lopsided, serve, with_model};

/// Places of a tile's lattice, row by row from the greatest y.
fn lattice(z: i32, x: i64, y: i64, step: usize) -> Vec<Site> {
    let n = 256 / step + 1;
    let side = 256.0 * 2f64.powi(-z);
    let along = |i: usize| side * i as f64 / (n - 1) as f64;
    (0..n * n)
        .map(|i| Site::new(x as f64 * side + along(i % n), (y + 1) as f64 * side - along(i / n)))
        .collect()
}

fn level(model: &Model, site: Site, band: usize) -> (f64, f64) {
    let found = model.predict_bands(&[site], &[band], &Progress::silent()).unwrap();
    (10.0 * found.power[[0, 0]].log10(), found.spread_db.unwrap()[[0, 0]])
}

fn inside(area: Region, site: &Site) -> bool {
    site.x_m >= area.low.x_m
        && site.x_m <= area.high.x_m
        && site.y_m >= area.low.y_m
        && site.y_m <= area.high.y_m
}

#[test]
fn a_tile_holds_what_the_model_predicts() {
    let (server, model) = with_model();
    let area = model.grid_or_default().unwrap().region();
    for (z, x, y, step) in [(3, 0, 0, 8), (2, 0, 0, 16), (5, 1, 2, 16), (4, 1, 0, 2), (7, 8, 3, 4)]
    {
        for band in [0, 2] {
            let tile = |layer: &str| {
                let query = format!("band={band}&step={step}&wait=true{layer}");
                let path = format!("/api/items/2/tile/{z}/{x}/{y}?{query}");
                let answer = get(&server, &path);
                assert_eq!(answer.status, 200, "{path}");
                assert!(answer.head.contains("portolan-detail: full"), "{path}");
                answer.numbers()
            };
            let power = tile("");
            let (spread, above) = (tile("&layer=spread"), tile("&layer=above&level=-62"));
            let sites = lattice(z, x, y, step);
            assert_eq!((power.len(), above.len()), (sites.len(), sites.len()));
            let seen: Vec<usize> = (0..sites.len()).filter(|&i| inside(area, &sites[i])).collect();
            assert!(!seen.is_empty());
            for &i in seen.iter().step_by(1 + seen.len() / 40) {
                let (db, sd) = level(&model, sites[i], band);
                assert!(
                    (f64::from(power[i]) / 100.0 - db).abs() <= 0.0051,
                    "{z} {i}: {} {db}",
                    power[i]
                );
                assert!((f64::from(spread[i]) / 100.0 - sd).abs() <= 0.0051, "{z} {i}");
                let chance = 100.0 * portolan::coverage::chance_above(db, sd, -62.0);
                // Level and spread are told to 0.005 dB, which moves the chance a little.
                let slack = 0.01 + 0.5 / sd.max(0.05);
                assert!(
                    (f64::from(above[i]) / 100.0 - chance).abs() <= slack,
                    "{z} {i}: {} {chance}",
                    above[i]
                );
            }
        }
    }
}

#[test]
fn the_best_server_is_the_strongest_band() {
    let (server, model) = with_model();
    let best = get(&server, "/api/items/2/tile/3/0/0?layer=best&step=16&wait=true").numbers();
    for (i, site) in lattice(3, 0, 0, 16).into_iter().enumerate() {
        if best[i] == i16::MIN {
            continue;
        }
        let of = |band: usize| level(&model, site, band).0;
        assert!((0..3).all(|band| of(best[i] as usize) >= of(band) - 0.011), "{i}");
    }
    assert!(best.iter().any(|b| *b != i16::MIN));
}

#[test]
fn tiles_come_together_and_drafts_are_replaced() {
    let (server, model) = with_model();
    let many = |more: &str| {
        let query = "z=7&x0=7&x1=8&y0=3&y1=3&band=1&step=8";
        get(&server, &format!("/api/items/2/tiles?{query}{more}")).body
    };
    // A draft of both tiles, or more where they were drawn already.
    let first = many("");
    assert!(first[..2].iter().all(|flag| [1, 3].contains(flag)), "{:?}", &first[..2]);
    assert_eq!(first.len(), 2 + 2 * 2 * 33 * 33);
    let path = "/api/items/2/tile/7/8/3?band=1&step=8&wait=true";
    let full = get(&server, path).body;
    get(&server, "/api/items/2/tile/7/7/3?band=0&step=8&wait=true");
    // All bands of a place are drawn at once.
    let now = many("&drafts=false");
    assert_eq!(now[..2], [1, 1]);
    assert_eq!(now[2 + 2 * 33 * 33..], full[..]);
    // A draft is near what it stands for.
    let drafts = first[2 + 2 * 33 * 33..].chunks(2).map(|b| i16::from_le_bytes([b[0], b[1]]));
    let sites = lattice(7, 8, 3, 8);
    for (i, draft) in drafts.enumerate().step_by(97) {
        let off = f64::from(draft) / 100.0 - level(&model, sites[i], 1).0;
        assert!(off.abs() < 2.0, "{i}: {off}");
    }
    // Outside of the map: it begins at -0.5 m.
    let outside = get(&server, "/api/items/2/tiles?z=4&x0=-2&x1=-2&y0=0&y1=1&step=8").body;
    assert_eq!(outside, [2, 2]);
    let answer = get(&server, "/api/items/2/tile/7/8/3?wait=perhaps");
    assert_eq!((answer.status, answer.error().contains("true or false")), (400, true));
}

#[test]
fn a_tile_is_the_same_whatever_was_drawn_before() {
    let tile = "/api/items/2/tile/3/0/0?band=1&step=2&layer=above&level=-60&wait=true";
    let alone = get(&with_model().0, tile).body;
    let (server, _) = with_model();
    for other in ["tile/4/0/0?", "tile/5/1/1?layer=spread&", "tile/3/0/0?layer=power&"] {
        assert_eq!(get(&server, &format!("/api/items/2/{other}wait=true")).status, 200);
    }
    assert!(get(&server, tile).body == alone);
}

#[test]
fn a_map_is_drawn_where_it_lies_and_not_turned() {
    let map = lopsided();
    let mut explorer = Explorer::empty();
    explorer.add_map("lopsided", map.clone()).unwrap();
    let server = serve(explorer);
    let power = get(&server, "/api/items/1/tile/4/0/0?band=1&step=8&wait=true").numbers();
    let sites = lattice(4, 0, 0, 8);
    let mut seen = 0;
    for (i, site) in sites.iter().enumerate() {
        if let Some(cell) =
            map.grid().cell_at(*site).filter(|c| map.grid().site(*c).distance_m(*site) < 1e-9)
        {
            let db = 10.0 * map.band(1)[[cell.row, cell.col]].log10();
            assert!((f64::from(power[i]) / 100.0 - db).abs() <= 0.0051);
            seen += 1;
        }
    }
    assert!(seen >= 4, "{seen}");
    let spread = get(&server, "/api/items/1/tile/4/0/0?layer=spread&step=8&wait=true").numbers();
    assert!(spread.iter().all(|s| *s == i16::MIN));
}
