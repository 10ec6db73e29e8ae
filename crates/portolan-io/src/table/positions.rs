//! Where the lines of a table are: cells, metres or degrees, and the grid that they lie on.

use portolan::{Crs, Grid, Region, Site};

use super::columns::Position;
use super::lines::Line;
use crate::error::{Check, Problem, shown};
use crate::gis::earth::{Degrees, Projection, crs_around};
use crate::options::ReadOptions;

/// The farthest cell a table may name; a grid's own limit is tighter.
const FARTHEST: f64 = (1u64 << 28) as f64;

/// Metres by which places in two systems may differ and still be one place.
const SAME_PLACE_M: f64 = 0.01;

/// So many lines are compared where metres and degrees stand side by side.
const COMPARED: usize = 1000;

/// Turns the positions of a table into places.
pub(crate) struct Positions {
    position: Position,
    /// The column of heights, or of floors, and the metres that a unit of it counts.
    height: Option<(usize, f64)>,
    sides: Option<(usize, usize)>,
    cell_m: Option<f64>,
    origin: Option<Site>,
    crs: Option<Crs>,
    as_map: bool,
    /// The greatest row and column so far, of tables that name cells.
    last: (usize, usize),
    /// Line number, row, col, x and y, in tables with both.
    known: Vec<(u64, [f64; 4])>,
    /// Metres and degrees of the same places, in tables with both.
    beside: Vec<(Site, Degrees)>,
}

/// Places in metres, the grid they belong to, and where on Earth they are.
pub(crate) struct Settled {
    pub sites: Vec<Site>,
    pub grid: Option<Grid>,
    pub crs: Option<Crs>,
}

impl Positions {
    pub fn new(
        (position, height): (Position, Option<(usize, f64)>),
        options: &ReadOptions,
        as_map: bool,
        warnings: &mut Vec<String>,
    ) -> Check<Self> {
        let on_grid = as_map || options.grid.is_some();
        let metres = matches!(position, Position::Metres(..) | Position::Degrees(..));
        if metres && options.cell_m.is_none() && on_grid {
            warnings.push("the cell size is not given: taken as 1 m".into());
        }
        let places = Self {
            position,
            height,
            sides: options.grid,
            cell_m: options.cell_m,
            origin: options.origin_m.map(|(x, y)| Site::new(x, y)),
            crs: options.crs,
            as_map,
            last: (0, 0),
            known: Vec::new(),
            beside: Vec::new(),
        };
        places.declared(options.grid.unwrap_or((1, 1)))?;
        if let Some(crs) = options.crs {
            Projection::of(crs)?;
        }
        Ok(places)
    }

    /// A grid where the caller says, with cells of the size that the caller says.
    fn declared(&self, (rows, cols): (usize, usize)) -> Check<Grid> {
        let origin = self.origin.unwrap_or(Site::new(0.0, 0.0));
        Ok(Grid::new(rows, cols, self.cell_m.unwrap_or(1.0))?.with_origin(origin)?)
    }

    /// The place of a line; a cell's is its row and column and a place on Earth its longitude and
    /// latitude until the table is read, and a height that is not given is NaN. None where a receiver
    /// had no fix.
    pub fn site(&mut self, line: &Line) -> Check<Option<Site>> {
        let Some(site) = self.plane_site(line)? else { return Ok(None) };
        let height = self.height.map(|(column, unit_m)| line.number(column).map(|n| unit_m * n));
        Ok(Some(site.at_height(height.transpose()?.unwrap_or(0.0))))
    }

    fn plane_site(&mut self, line: &Line) -> Check<Option<Site>> {
        let (row, col) = match self.position {
            Position::Degrees(lat, lon) => {
                let Some(at) = degrees(line, lat, lon)? else { return Ok(None) };
                return Ok(Some(Site::new(at.lon, at.lat)));
            }
            Position::Metres(x, y, beside) => {
                let site = Site::new(place(line, x)?, place(line, y)?);
                self.compare(line, site, beside)?;
                if let Some(sides) = self.sides
                    && self.declared(sides)?.cell_at(site).is_none()
                {
                    let place = format!("x {}, y {}", shown(site.x_m), shown(site.y_m));
                    return Err(off_grid(line, &place, sides));
                }
                return Ok(Some(site));
            }
            Position::Cell(row, col) => (whole(line, row)?, whole(line, col)?),
            Position::Both([row, col, x, y], beside) => {
                let (r, c) = (whole(line, row)?, whole(line, col)?);
                let site = Site::new(place(line, x)?, place(line, y)?);
                self.compare(line, site, beside)?;
                self.known.push((line.number, [r as f64, c as f64, site.x_m, site.y_m]));
                (r, c)
            }
        };
        if let Some((rows, cols)) = self.sides.filter(|s| row >= s.0 || col >= s.1) {
            return Err(off_grid(line, &format!("row {row}, col {col}"), (rows, cols)));
        }
        self.last = (self.last.0.max(row), self.last.1.max(col));
        Ok(Some(Site::new(row as f64, col as f64)))
    }

    fn compare(&mut self, line: &Line, site: Site, beside: Option<(usize, usize)>) -> Check<()> {
        if let Some((lat, lon)) = beside
            && self.beside.len() < COMPARED
            && let Some(at) = degrees(line, lat, lon)?
        {
            self.beside.push((site, at));
        }
        Ok(())
    }

    /// Places in metres, and the grid that they belong to: the caller's, the smallest that holds
    /// every cell, or none for places in metres that are readings.
    pub fn settle(&self, mut sites: Vec<Site>, warnings: &mut Vec<String>) -> Check<Settled> {
        fill_heights(&mut sites, warnings)?;
        if let Position::Metres(..) | Position::Degrees(..) = self.position {
            let crs = match self.position {
                Position::Degrees(..) => Some(project(&mut sites, self.crs)?),
                _ => self.beside_crs(warnings)?,
            };
            let grid = match self.sides {
                Some((rows, cols)) => {
                    let grid = self.declared((rows, cols))?;
                    // Nobody knows where a grid in degrees begins: where the sensors do.
                    match (self.position, self.origin, Region::around(&sites)) {
                        (Position::Degrees(..), None, Some(around)) => {
                            Some(grid.with_origin(around.low)?)
                        }
                        _ => Some(grid),
                    }
                }
                None => grid_over(&sites, self.cell_m.or(self.as_map.then_some(1.0)), self.origin)?,
            };
            return Ok(Settled { sites, grid, crs });
        }
        let sides @ (rows, cols) = self.sides.unwrap_or((self.last.0 + 1, self.last.1 + 1));
        if self.sides.is_none() && self.known.is_empty() {
            warnings.push(format!("the grid is not given: {rows} x {cols} holds every position"));
        }
        let grid = self.known_grid(sides)?;
        for site in &mut sites {
            *site = grid.site_at([site.x_m, site.y_m]).at_height(site.z_m);
        }
        Ok(Settled { sites, grid: Some(grid), crs: self.beside_crs(warnings)? })
    }

    /// The system in which the metres of a table are its degrees.
    fn beside_crs(&self, warnings: &mut Vec<String>) -> Check<Option<Crs>> {
        if self.crs.is_some() || self.beside.is_empty() {
            return Ok(self.crs);
        }
        let degrees: Vec<Degrees> = self.beside.iter().map(|(_, at)| *at).collect();
        let crs = crs_around(&degrees);
        let projection = Projection::of(crs)?;
        let same = |(site, at): &(Site, Degrees)| {
            projection.forward(*at).is_ok_and(|there| there.distance_m(*site) < SAME_PLACE_M)
        };
        if self.beside.iter().all(same) {
            return Ok(Some(crs));
        }
        warnings.push(format!(
            "x and y are not the metres of {crs} that its latitudes and longitudes have: taken as \
             metres of their own; --crs says otherwise"
        ));
        Ok(None)
    }

    /// The grid whose cells lie where the table says; what the caller says goes first.
    fn known_grid(&self, sides: (usize, usize)) -> Check<Grid> {
        let Some((_, first)) = self.known.first() else { return self.declared(sides) };
        // The line that is farthest along an axis tells the size of a cell best.
        let size = |axis: usize| {
            let steps = |at: &[f64; 4]| (at[axis] - first[axis]).abs();
            let far = self.known.iter().map(|(_, at)| at);
            let far = far.max_by(|a, b| steps(a).total_cmp(&steps(b)))?;
            let size = (far[2 + axis] - first[2 + axis]) / (far[axis] - first[axis]);
            // Places have lost the last digits of a size.
            (far[axis] != first[axis]).then(|| format!("{size:.11e}").parse().unwrap_or(size))
        };
        let cell_m = self.cell_m.or_else(|| size(0)).or_else(|| size(1)).unwrap_or(1.0);
        let corner = Site::new(first[2] - first[0] * cell_m, first[3] - first[1] * cell_m);
        let grid =
            Grid::new(sides.0, sides.1, cell_m)?.with_origin(self.origin.unwrap_or(corner))?;
        let declared = self.cell_m.is_some() || self.origin.is_some();
        let apart = |at: &[f64; 4]| {
            let site = grid.site_at([at[0], at[1]]);
            let slack = 1e-6 * cell_m + 1e-12 * (at[2].abs() + at[3].abs());
            (site.x_m - at[2]).abs().max((site.y_m - at[3]).abs()) > slack
        };
        match self.known.iter().find(|(_, at)| !declared && apart(at)) {
            None => Ok(grid),
            Some((line, [row, col, x, y])) => Err(Problem::new(format!(
                "line {line}: row {row}, col {col} at x {}, y {} is not a cell of the grid that \
                 the other lines make: give row,col or x_m,y_m alone",
                shown(*x),
                shown(*y)
            ))),
        }
    }
}

/// Gives lines without a height the one that half of the others have or more, and says so.
fn fill_heights(sites: &mut [Site], warnings: &mut Vec<String>) -> Check<()> {
    let lacks: Vec<usize> = (0..sites.len()).filter(|&i| sites[i].z_m.is_nan()).collect();
    let Some(first) = lacks.first() else { return Ok(()) };
    let mut known: Vec<f64> = sites.iter().map(|s| s.z_m).filter(|z| !z.is_nan()).collect();
    if known.is_empty() {
        return Err(Problem::new("the column of heights is empty: leave it out"));
    }
    let middle = known.len() / 2;
    let usual = *known.select_nth_unstable_by(middle, f64::total_cmp).1;
    warnings.push(format!(
        "{} of {} rows have no height (the first is row {}): taken as {} m, the usual one",
        lacks.len(),
        sites.len(),
        first + 1,
        shown(usual)
    ));
    lacks.into_iter().for_each(|i| sites[i] = sites[i].at_height(usual));
    Ok(())
}

/// The grid with cells of a size around some places, from an origin where one is given; None without
/// a size.
pub(crate) fn grid_over(
    sites: &[Site],
    cell_m: Option<f64>,
    origin: Option<Site>,
) -> Check<Option<Grid>> {
    let (Some(region), Some(cell_m)) = (Region::around(sites), cell_m) else { return Ok(None) };
    let low = origin.unwrap_or(region.low);
    Ok(Some(Grid::covering(Region { low, ..region }, cell_m)?))
}

/// Turns longitudes and latitudes into metres, of the system asked for or of the zone around them.
pub(crate) fn project(sites: &mut [Site], asked: Option<Crs>) -> Check<Crs> {
    let at = |site: &Site| Degrees { lat: site.y_m, lon: site.x_m };
    let crs = asked.unwrap_or_else(|| crs_around(&sites.iter().map(at).collect::<Vec<_>>()));
    let projection = Projection::of(crs)?;
    for site in sites.iter_mut() {
        *site = projection.forward(at(site)).map_err(Problem::new)?.at_height(site.z_m);
    }
    Ok(crs)
}

/// Latitude and longitude of a line. None where either is empty, and at 0, 0: a receiver without a
/// fix.
pub(crate) fn degrees(line: &Line, lat: usize, lon: usize) -> Check<Option<Degrees>> {
    let at = Degrees { lat: line.number(lat)?, lon: line.number(lon)? };
    if at.lat.is_nan() || at.lon.is_nan() || (at.lat == 0.0 && at.lon == 0.0) {
        return Ok(None);
    }
    if at.lat.abs() > 90.0 {
        return Err(line.wrong(lat, "expected a latitude from -90 to 90 degrees"));
    }
    if at.lon.abs() > 360.0 {
        return Err(line.wrong(lon, "expected a longitude from -180 to 180 degrees"));
    }
    Ok(Some(at))
}

pub(crate) fn place(line: &Line, column: usize) -> Check<f64> {
    let value = line.number(column)?;
    if value.is_nan() {
        return Err(line.wrong(column, "expected a position"));
    }
    Ok(value)
}

fn whole(line: &Line, column: usize) -> Check<usize> {
    let value = place(line, column)?;
    if value.fract() != 0.0 {
        return Err(line.wrong(column, "expected a whole number"));
    }
    if !(0.0..FARTHEST).contains(&value) {
        let what = format!("{} is off the grid, which starts at 0", shown(value));
        return Err(line.wrong(column, &what));
    }
    Ok(value as usize)
}

fn off_grid(line: &Line, place: &str, (rows, cols): (usize, usize)) -> Problem {
    let at = line.place();
    Problem::new(format!(
        "{at}: {place} is off the {rows} x {cols} grid: give a larger grid or remove the \
         line"
    ))
}
