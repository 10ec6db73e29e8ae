"""Makes the small files of docs/recipes: a walk of ten minutes through a courtyard with seven
transmitters, as five instruments would have written it down, and a floor with five access points.
`python docs/recipes/make.py` writes the same bytes every time."""

import json
import math
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path

HERE = Path(__file__).parent
LAT, LON = 49.4875, 8.4660
START = datetime(2026, 5, 4, 9, 30, tzinfo=timezone.utc)
random.seed(7)

ACCESS_POINTS = [
    # x, y in metres, name, address, channel, level at 1 m in dBm
    (40, 30, "library", "02:00:00:aa:00:01", 1, -28),
    (150, 45, "library", "02:00:00:aa:00:02", 6, -30),
    (230, 140, "lab", "02:00:00:bb:00:01", 11, -27),
    (90, 160, "lab", "02:00:00:bb:00:02", 36, -33),
    (20, 120, "cafe", "02:00:00:cc:00:01", 6, -31),
    (190, 90, "guest", "02:00:00:dd:00:01", 44, -34),
    (120, 100, "once", "02:00:00:ee:00:01", 1, -58),
]


def degrees(x, y):
    """Near enough to a plane for a courtyard."""
    return LAT + y / 111_200.0, LON + x / (111_320.0 * math.cos(math.radians(LAT)))


def walk(seconds):
    """There and back in lanes, a step a second."""
    lane, along = divmod(seconds * 1.4, 240.0)
    x = along if int(lane) % 2 == 0 else 240.0 - along
    return 5 + x, 10 + 35.0 * lane


def level(x, y, ap):
    distance = max(1.0, math.hypot(x - ap[0], y - ap[1]))
    ripple = 3.0 * math.sin(x / 23.0 + ap[0]) * math.cos(y / 31.0 + ap[1])
    return ap[5] - 27.0 * math.log10(distance) + ripple + random.gauss(0.0, 2.0)


def frames(every, floor=-92.0):
    """Time, place and what is heard, every so many seconds."""
    for seconds in range(0, 840, every):
        x, y = walk(seconds)
        heard = [(ap, level(x, y, ap)) for ap in ACCESS_POINTS]
        yield seconds, x, y, [(ap, dbm) for ap, dbm in heard if dbm > floor]


def frequency(channel):
    return 2407 + 5 * channel if channel < 14 else 5000 + 5 * channel


def wigle(path, version, kismet=False):
    extra = "Frequency," if version == "1.6" else ""
    ids = "RCOIs,MfgrId," if version == "1.6" else ""
    app = "Kismet" if kismet else "2.80"
    lines = [
        f"WigleWifi-{version},appRelease={app},model=made,release=1,device=made,display=,board=,brand=made",
        f"MAC,SSID,AuthMode,FirstSeen,Channel,{extra}RSSI,CurrentLatitude,CurrentLongitude,"
        f"AltitudeMeters,AccuracyMeters,{ids}Type",
    ]
    for seconds, x, y, heard in frames(6):
        lat, lon = degrees(x, y)
        time = (START + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")
        for ap, dbm in heard:
            rssi = 0 if kismet and seconds % 90 == 0 else round(dbm)
            freq = f"{frequency(ap[4])}," if version == "1.6" else ""
            none = ",," if version == "1.6" else ""
            lines.append(
                f"{ap[3]},{ap[2]},[WPA2-PSK-CCMP][ESS],{time},{ap[4]},{freq}{rssi},"
                f"{lat:.7f},{lon:.7f},104,4,{none}WIFI"
            )
    path.write_text("\n".join(lines) + "\n")


def app_log(path):
    """A line per reading of a telephone's logger: names of its own, its level without a unit."""
    lines = ["timestamp;lng;lat;cellid;level;speed"]
    for seconds, x, y, heard in frames(4, floor=-200.0):
        lat, lon = degrees(x, y)
        time = int((START + timedelta(seconds=seconds)).timestamp() * 1000)
        ap, dbm = max(heard[:3], key=lambda pair: pair[1])
        name = f"cell-{ACCESS_POINTS.index(ap) + 1}"
        lines.append(f"{time};{lon:.7f};{lat:.7f};{name};{dbm - 30:.1f};1.4")
    path.write_text("\n".join(lines) + "\n")


def gpx(path):
    points = []
    for seconds in range(0, 840, 2):
        if 300 <= seconds < 380:
            continue  # the receiver lost its fix under a roof
        lat, lon = degrees(*walk(seconds))
        time = (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
        points.append(f'<trkpt lat="{lat:.7f}" lon="{lon:.7f}"><time>{time}</time></trkpt>')
    path.write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<gpx version="1.1" creator="made" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>\n'
        + "\n".join(points)
        + "\n</trkseg></trk></gpx>\n"
    )


def sweeps(path, hackrf):
    """Two broadcast stations of a kind; the clock shows local summer time."""
    stations = [(98e6, 40, 40, -20), (101e6, 220, 150, -24)]
    if hackrf:
        stations = [(2.412e9, 40, 30, -26), (2.437e9, 150, 45, -30)]
    low, high, step = (96e6, 104e6, 0.5e6) if not hackrf else (2.4e9, 2.45e9, 5e6)
    lines = []
    for seconds in range(0, 840, 10):
        x, y = walk(seconds)
        time = START + timedelta(hours=2, seconds=seconds)
        hop = (high - low) / 2
        hops = [low, low + hop] if not hackrf else [low + hop, low]
        for number, start in enumerate(hops):
            stamp = time + timedelta(milliseconds=200 * number)
            bins = []
            for i in range(round(hop / step)):
                middle = start + (i + 0.5) * step
                power = 10 ** (-105 / 10)
                for freq, sx, sy, at_1m in stations:
                    shape = math.exp(-(((middle - freq) / (2.5 * step)) ** 2))
                    distance = max(1.0, math.hypot(x - sx, y - sy))
                    power += 10 ** ((at_1m - 25.0 * math.log10(distance)) / 10) * shape
                bins.append(10 * math.log10(power) + random.gauss(0.0, 1.0))
            text = [f"{b:.2f}" for b in bins]
            if not hackrf:
                text.append(text[-1])  # rtl_power prints the last level twice
            clock = stamp.strftime("%H:%M:%S") + (f".{stamp.microsecond:06d}" if hackrf else "")
            lines.append(
                f"{stamp:%Y-%m-%d}, {clock}, {start:.0f}, {start + hop:.0f}, {step:.2f}, 64, "
                + ", ".join(text)
            )
    path.write_text("\n".join(lines) + "\n")


def points(path):
    """Spots of a site survey, drawn in a GIS."""
    features = []
    for seconds, x, y, heard in frames(20, floor=-200.0):
        lat, lon = degrees(x, y)
        dbm = {f"dbm_{name}": None for name in ("library", "lab", "cafe")}
        for name in ("library", "lab", "cafe"):
            dbm[f"dbm_{name}"] = round(max(d for ap, d in heard if ap[2] == name), 1)
        features.append(
            {
                "type": "Feature",
                "geometry": {"type": "Point", "coordinates": [round(lon, 7), round(lat, 7)]},
                "properties": dbm,
            }
        )
    collection = {"type": "FeatureCollection", "features": features}
    path.write_text(json.dumps(collection, indent=None, separators=(",", ":")) + "\n")


def fingerprints(survey, known, desks):
    """A floor of 60 m x 36 m: a line per place, a column per access point, 100 where not heard."""
    masts = [(9, 7), (31, 29), (52, 10), (22, 18), (47, 31)]
    lines = ["x_m,y_m," + ",".join(f"WAP{n + 1}" for n in range(len(masts)))]
    for step in range(72):
        x, y = 2.5 + 5.0 * (step % 12), 3.0 + 6.0 * (step // 12)
        x, y = x + random.uniform(-1.5, 1.5), y + random.uniform(-1.5, 1.5)
        values = []
        for mast_x, mast_y in masts:
            walls = 3.0 * math.sin(x / 7.0 + mast_x) * math.cos(y / 9.0 + mast_y)
            dbm = -38.0 - 34.0 * math.log10(1.0 + math.hypot(x - mast_x, y - mast_y)) + walls
            dbm += random.gauss(0.0, 2.0)
            values.append(f"{dbm:.0f}" if dbm > random.gauss(-84.0, 1.5) else "100")
        lines.append(f"{x:.2f},{y:.2f}," + ",".join(values))
    survey.write_text("\n".join(lines) + "\n")
    rows = [f"WAP{n + 1},{x},{y},2.5" for n, (x, y) in enumerate(masts)]
    known.write_text("\n".join(["band,x_m,y_m,height_m", *rows]) + "\n")
    desks.write_text("name,x_m,y_m\nreception,4,4\nkitchen,33,20\nlab,57,33\n")


wigle(HERE / "wigle.csv", "1.6")
wigle(HERE / "kismet.wiglecsv", "1.4", kismet=True)
app_log(HERE / "phone.csv")
gpx(HERE / "walk.gpx")
sweeps(HERE / "rtl_power.csv", hackrf=False)
sweeps(HERE / "hackrf_sweep.csv", hackrf=True)
points(HERE / "spots.geojson")
fingerprints(HERE / "fingerprints.csv", HERE / "access-points.csv", HERE / "desks.csv")
