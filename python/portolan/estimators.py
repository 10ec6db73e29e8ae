"""One estimator for each method of the register. An option that is None has the method's default."""

from __future__ import annotations

from ._base import Estimator, Grid, Option, Transmitters


class Nearest(Estimator):
    """The reading of the nearest sensor.

    Options, with their defaults:

    - domain: log | linear; default log (ours: power spans decades)
    - offset: the a of ln(x + a), in the readings' unit; default none; above the noise where
      some readings are zero
    - random_state: seed of everything random; None is 0
    """

    _method = "nearest"

    def __init__(
        self,
        *,
        domain: Option = None,
        offset: Option = None,
        random_state: int | None = None,
    ) -> None:
        self.domain = domain
        self.offset = offset
        self.random_state = random_state


class InverseDistance(Estimator):
    """Inverse distance weighting of the nearest sensors.

    Options, with their defaults:

    - power: a number above 0; default 3 (ours, by measurement)
    - neighbours: how many nearest sensors count; default 12 (ours, by measurement)
    - domain: log | linear; default log (ours: power spans decades)
    - offset: the a of ln(x + a), in the readings' unit; default none; above the noise where
      some readings are zero
    - random_state: seed of everything random; None is 0
    """

    _method = "idw"

    def __init__(
        self,
        *,
        power: Option = None,
        neighbours: Option = None,
        domain: Option = None,
        offset: Option = None,
        random_state: int | None = None,
    ) -> None:
        self.power = power
        self.neighbours = neighbours
        self.domain = domain
        self.offset = offset
        self.random_state = random_state


class Linear(Estimator):
    """Linear over Delaunay triangles, nearest outside the hull.

    Options, with their defaults:

    - domain: log | linear; default log (ours: power spans decades)
    - offset: the a of ln(x + a), in the readings' unit; default none; above the noise where
      some readings are zero
    - random_state: seed of everything random; None is 0
    """

    _method = "linear"

    def __init__(
        self,
        *,
        domain: Option = None,
        offset: Option = None,
        random_state: int | None = None,
    ) -> None:
        self.domain = domain
        self.offset = offset
        self.random_state = random_state


class ThinPlate(Estimator):
    """Thin-plate spline through the readings.

    Options, with their defaults:

    - smoothing: a number, 0 or more: added on the diagonal, in square metres; default 0
      (through the readings, as SciPy)
    - neighbours: number of nearest sensors used for a place; default all up to 2000 sensors,
      then 96
    - domain: log | linear; default log (ours: power spans decades)
    - offset: the a of ln(x + a), in the readings' unit; default none; above the noise where
      some readings are zero
    - random_state: seed of everything random; None is 0
    """

    _method = "thin_plate"

    def __init__(
        self,
        *,
        smoothing: Option = None,
        neighbours: Option = None,
        domain: Option = None,
        offset: Option = None,
        random_state: int | None = None,
    ) -> None:
        self.smoothing = smoothing
        self.neighbours = neighbours
        self.domain = domain
        self.offset = offset
        self.random_state = random_state


class Kriging(Estimator):
    """Ordinary or universal kriging, hyperparameters fitted, with a spread.

    Options, with their defaults:

    - covariance: exponential | gaussian | spherical | matern32 | matern52; default
      exponential (what shadowing follows)
    - decorrelation: metres; default fitted
    - sill: dB^2 (power^2 in domain=linear); default fitted
    - nugget: dB^2 (power^2 in domain=linear); default fitted
    - trend: constant | linear | quadratic; default constant (ordinary kriging)
    - exact: true | false: reproduce the readings at the sensors, as PyKrige does; default
      false (the nugget is noise and is smoothed away)
    - neighbours: number of nearest sensors used for a place; default all up to 2000 sensors,
      then 128
    - domain: log | linear; default log (ours: power spans decades)
    - offset: the a of ln(x + a), in the readings' unit; default none; above the noise where
      some readings are zero
    - random_state: seed of everything random; None is 0
    """

    _method = "kriging"

    def __init__(
        self,
        *,
        covariance: Option = None,
        decorrelation: Option = None,
        sill: Option = None,
        nugget: Option = None,
        trend: Option = None,
        exact: Option = None,
        neighbours: Option = None,
        domain: Option = None,
        offset: Option = None,
        random_state: int | None = None,
    ) -> None:
        self.covariance = covariance
        self.decorrelation = decorrelation
        self.sill = sill
        self.nugget = nugget
        self.trend = trend
        self.exact = exact
        self.neighbours = neighbours
        self.domain = domain
        self.offset = offset
        self.random_state = random_state


class Btd(Estimator):
    """Block-term decomposition: emitters with SLFs of low rank.

    Options, with their defaults:

    - rank: 1 to 1000: the rank L of an SLF; default 10 (paper)
    - thin_plate: true | false: regularise towards SLFs interpolated by thin-plate
      splines; default true (as published)
    - iterations: 1 to 1000000; default 200
    - tolerance: stop once the loss changes relatively less; 0 = never; default 1e-5
    - emitters: number of emitters; None counts them
    - grid: cells along x and y, metres per cell, x and y of the first centre; None lays one
      around the sensors
    - random_state: seed of everything random; None is 0
    """

    _method = "btd"

    def __init__(
        self,
        *,
        rank: Option = None,
        thin_plate: Option = None,
        iterations: Option = None,
        tolerance: Option = None,
        emitters: int | None = None,
        grid: Grid | None = None,
        random_state: int | None = None,
    ) -> None:
        self.rank = rank
        self.thin_plate = thin_plate
        self.iterations = iterations
        self.tolerance = tolerance
        self.emitters = emitters
        self.grid = grid
        self.random_state = random_state


class NaiveUnn(Estimator):
    """One untrained decoder that draws every band, without emitters (the paper's baseline).

    Options, with their defaults:

    - parameters: the most parameters the network may have; sets its channels; default 1080
      (paper: as many as unn)
    - channels: 1 to 128; default by parameters
    - start: uniform | xavier; default xavier
    - tolerance: stop once the loss changes relatively less; 0 = never; default 0
    - output: sigmoid | exp; default sigmoid (paper)
    - lr_network: a number above 0; default 0.05 (paper), falling (ours)
    - offset: the a of ln(x + a), in the readings' unit; default from the unit: none for
      measured power, 1e-6 for the paper's maps
    - iterations: 1 to 1000000; default 300 (paper)
    - lambda_latent: a number, 0 or more; default 1e-3 (paper)
    - lambda_network: a number, 0 or more; default 1e-4 (paper)
    - blocks: 1 to 7; default 4 (paper)
    - keep: 0 to 7: further blocks, after those that enlarge, that keep the size; default 0
      (paper)
    - kernel: 1 to 7; default 3 (paper)
    - upsample: bilinear | nearest | none; default bilinear (paper)
    - norm: batch | sample | none; default batch (the paper's table)
    - pad: reflect | zero; default reflect (as in the deep decoder)
    - grid: cells along x and y, metres per cell, x and y of the first centre; None lays one
      around the sensors
    - random_state: seed of everything random; None is 0
    """

    _method = "naive_unn"

    def __init__(
        self,
        *,
        parameters: Option = None,
        channels: Option = None,
        start: Option = None,
        tolerance: Option = None,
        output: Option = None,
        lr_network: Option = None,
        offset: Option = None,
        iterations: Option = None,
        lambda_latent: Option = None,
        lambda_network: Option = None,
        blocks: Option = None,
        keep: Option = None,
        kernel: Option = None,
        upsample: Option = None,
        norm: Option = None,
        pad: Option = None,
        grid: Grid | None = None,
        random_state: int | None = None,
    ) -> None:
        self.parameters = parameters
        self.channels = channels
        self.start = start
        self.tolerance = tolerance
        self.output = output
        self.lr_network = lr_network
        self.offset = offset
        self.iterations = iterations
        self.lambda_latent = lambda_latent
        self.lambda_network = lambda_network
        self.blocks = blocks
        self.keep = keep
        self.kernel = kernel
        self.upsample = upsample
        self.norm = norm
        self.pad = pad
        self.grid = grid
        self.random_state = random_state


class Unn(Estimator):
    """The paper's domain-factored untrained decoder.

    Options, with their defaults:

    - recipe: default | paper; default default (our measured best)
    - start: default | uniform | xavier | btd | interpolation | unmixed; default default =
      unmixed (ours); btd in recipe=paper
    - tolerance: the change of the loss that counts as none; 0 = the iterations alone
      decide; default 0 (ours); 1e-3 in recipe=paper
    - ending: text (the iterations or a relative change below tolerance) | box (the
      iterations and a change below tolerance); default text (ours); box in recipe=paper
    - most_iterations: 1 to 1000000: where ending=box stops at last; default 3000; 500 for
      levels
    - channels: 1 to 128; default 6 (paper)
    - output: sigmoid | exp; default exp (ours); sigmoid from a random start and in
      recipe=paper
    - start_learns: slf (the start's SLFs; its PSDs are kept) | map (the start's map, PSDs
      too); default slf (ours); map in recipe=paper
    - start_domain: log | linear: how a map is learnt (start_learns=map); default log
    - start_iterations: how long the decoder learns what the start says; default 3000, with
      noise 1000 (ours); 1500 in recipe=paper; fewer on large grids
    - lr_start: a number above 0: rate of the network while it learns the start; default
      0.03, falling (ours); 0.05 in recipe=paper
    - lr_start_psd: a number, 0 or more: rate of the PSDs then (start_learns=map); default
      as lr_start
    - rates: text | box: which of the paper's two assignments of .05 and .001
      (recipe=paper); default text
    - lr_network: a number above 0; default 0.005, falling (ours); 0.05 from a random start;
      as rates in recipe=paper
    - lr_psd: a number, 0 or more; default 0.002, falling (ours); 0.01 from a random start;
      as rates in recipe=paper
    - members: 1 to 1000: fits that are averaged; from 2 on they have a spread; default 8
      (ours); 1 on grids of more than 65536 cells, from a random start and in recipe=paper
    - lambda_psd: a number, 0 or more; default 1e-3 (paper)
    - offset: the a of ln(x + a), in the readings' unit; default from the unit: none for
      measured power, 1e-6 for the paper's maps
    - iterations: 1 to 1000000; default 300 (paper)
    - lambda_latent: a number, 0 or more; default 1e-3 (paper)
    - lambda_network: a number, 0 or more; default 1e-4 (paper)
    - blocks: 1 to 7; default 4 (paper)
    - keep: 0 to 7: further blocks, after those that enlarge, that keep the size; default 0
      (paper)
    - kernel: 1 to 7; default 3 (paper)
    - upsample: bilinear | nearest | none; default bilinear (paper)
    - norm: batch | sample | none; default batch (the paper's table)
    - pad: reflect | zero; default reflect (as in the deep decoder)
    - emitters: number of emitters; None counts them
    - grid: cells along x and y, metres per cell, x and y of the first centre; None lays one
      around the sensors
    - random_state: seed of everything random; None is 0
    """

    _method = "unn"

    def __init__(
        self,
        *,
        recipe: Option = None,
        start: Option = None,
        tolerance: Option = None,
        ending: Option = None,
        most_iterations: Option = None,
        channels: Option = None,
        output: Option = None,
        start_learns: Option = None,
        start_domain: Option = None,
        start_iterations: Option = None,
        lr_start: Option = None,
        lr_start_psd: Option = None,
        rates: Option = None,
        lr_network: Option = None,
        lr_psd: Option = None,
        members: Option = None,
        lambda_psd: Option = None,
        offset: Option = None,
        iterations: Option = None,
        lambda_latent: Option = None,
        lambda_network: Option = None,
        blocks: Option = None,
        keep: Option = None,
        kernel: Option = None,
        upsample: Option = None,
        norm: Option = None,
        pad: Option = None,
        emitters: int | None = None,
        grid: Grid | None = None,
        random_state: int | None = None,
    ) -> None:
        self.recipe = recipe
        self.start = start
        self.tolerance = tolerance
        self.ending = ending
        self.most_iterations = most_iterations
        self.channels = channels
        self.output = output
        self.start_learns = start_learns
        self.start_domain = start_domain
        self.start_iterations = start_iterations
        self.lr_start = lr_start
        self.lr_start_psd = lr_start_psd
        self.rates = rates
        self.lr_network = lr_network
        self.lr_psd = lr_psd
        self.members = members
        self.lambda_psd = lambda_psd
        self.offset = offset
        self.iterations = iterations
        self.lambda_latent = lambda_latent
        self.lambda_network = lambda_network
        self.blocks = blocks
        self.keep = keep
        self.kernel = kernel
        self.upsample = upsample
        self.norm = norm
        self.pad = pad
        self.emitters = emitters
        self.grid = grid
        self.random_state = random_state


class Dgm(Estimator):
    """SLFs of a generator trained on simulated ones, with their PSDs (the learned baseline).

    Options, with their defaults:

    - weights: broad | narrow (7 to 8 dB, 40 to 70 m); default broad (trained on shadowing
      of 4 to 8 dB, decorrelation of 40 to 90 m)
    - start: unmixed | random; default unmixed (ours)
    - draws: 1 to 100000 random points to look at; default 128 (ours)
    - starts: 1 to 1000, as many of the best draws are descended; default 3 (ours)
    - start_iterations: 1 to 1000000, for each; default 200 (ours)
    - iterations: 1 to 1000000; default 400 (ours)
    - tolerance: stop once the loss changes relatively less; 0 = never; default 0
    - lr_latent: a number above 0; default 0.2, falling (ours)
    - lr_psd: a number, 0 or more; default 0.01, falling (ours)
    - lambda_latent: weight of |z|^2 beside the misfit per band; a number, 0 or more;
      default 0.03 (ours)
    - offset: the a of ln(x + a), in the readings' unit; default from the unit: none for
      measured power, 1e-6 for the paper's maps
    - emitters: number of emitters; None counts them
    - grid: cells along x and y, metres per cell, x and y of the first centre; None lays one
      around the sensors
    - random_state: seed of everything random; None is 0
    """

    _method = "dgm"

    def __init__(
        self,
        *,
        weights: Option = None,
        start: Option = None,
        draws: Option = None,
        starts: Option = None,
        start_iterations: Option = None,
        iterations: Option = None,
        tolerance: Option = None,
        lr_latent: Option = None,
        lr_psd: Option = None,
        lambda_latent: Option = None,
        offset: Option = None,
        emitters: int | None = None,
        grid: Grid | None = None,
        random_state: int | None = None,
    ) -> None:
        self.weights = weights
        self.start = start
        self.draws = draws
        self.starts = starts
        self.start_iterations = start_iterations
        self.iterations = iterations
        self.tolerance = tolerance
        self.lr_latent = lr_latent
        self.lr_psd = lr_psd
        self.lambda_latent = lambda_latent
        self.offset = offset
        self.emitters = emitters
        self.grid = grid
        self.random_state = random_state


class Field(Estimator):
    """Path loss and shadowing of every emitter, with places, PSDs and a spread (ours).

    Options, with their defaults:

    - rounds: 1 to 1000: most rounds of the fit; default 30 (ours); 8 from an earlier map
    - decorrelation: metres; default fitted
    - shadow_db: dB; default fitted
    - exponent: expected path-loss exponent; default 2.3 (ours)
    - exponent_sd: standard deviation of the exponents; default 0.35 (ours)
    - positions: average | best: over where an emitter may stand, or the likeliest place
      only; default average (ours)
    - neighbours: number of nearest sensors used for a place; default all up to 4000 sensors,
      then 128
    - offset: the a of ln(x + a), in the readings' unit; default from the unit: none for
      measured power, 1e-6 for the paper's maps
    - emitters: number of emitters; None counts them
    - transmitters: those whose places are known, as in :func:`portolan.fit`
    - random_state: seed of everything random; None is 0
    """

    _method = "field"

    def __init__(
        self,
        *,
        rounds: Option = None,
        decorrelation: Option = None,
        shadow_db: Option = None,
        exponent: Option = None,
        exponent_sd: Option = None,
        positions: Option = None,
        neighbours: Option = None,
        offset: Option = None,
        emitters: int | None = None,
        transmitters: Transmitters = None,
        random_state: int | None = None,
    ) -> None:
        self.rounds = rounds
        self.decorrelation = decorrelation
        self.shadow_db = shadow_db
        self.exponent = exponent
        self.exponent_sd = exponent_sd
        self.positions = positions
        self.neighbours = neighbours
        self.offset = offset
        self.emitters = emitters
        self.transmitters = transmitters
        self.random_state = random_state


class Auto(Estimator):
    """The best of several methods by cross-validation over sensors (the default).

    Options, with their defaults:

    - folds: 2 to 20: fit to parts of the sensors instead, so many times; default none:
      every sensor is left out in turn
    - emitters: number of emitters; None counts them
    - transmitters: those whose places are known, as in :func:`portolan.fit`
    - random_state: seed of everything random; None is 0
    """

    _method = "auto"

    def __init__(
        self,
        *,
        folds: Option = None,
        emitters: int | None = None,
        transmitters: Transmitters = None,
        random_state: int | None = None,
    ) -> None:
        self.folds = folds
        self.emitters = emitters
        self.transmitters = transmitters
        self.random_state = random_state
