"""Writes one survey in the formats of other programs, for tests/files/formats.rs.

Needs openpyxl, pyshp and simplekml; SQLite is Python's own. Run it here: python make_formats.py
"""
import csv
import datetime
import io
import sqlite3
import struct
import zipfile

import openpyxl
import shapefile
import simplekml

START = 1714564800  # 2024-05-01T12:00:00Z
lines = []
for place in range(8):
    for ap in range(3):
        lines.append(dict(
            lat=round(49.48 + 0.0007 * (place % 3), 6), lon=round(8.46 + 0.0009 * (place // 3), 6),
            bssid=f"02:00:00:00:00:0{ap}", rssi=-50 - 3 * place - 7 * ap + ((5 * place + ap) % 4),
            freq_mhz=2412 + 25 * ap, time=START + 30 * place))
names = list(lines[0])


def moment(line):
    return datetime.datetime.fromtimestamp(line["time"], datetime.UTC).replace(tzinfo=None)


with open("survey.csv", "w", newline="") as file:
    writer = csv.DictWriter(file, names)
    writer.writeheader()
    writer.writerows(lines)

book = openpyxl.Workbook()
book.active.append(names)
for line in lines:
    book.active.append([*list(line.values())[:-1], moment(line)])
book.create_sheet("notes").append(["nothing"])
book.save("survey.xlsx")

parts = {name: io.BytesIO() for name in ("shp", "shx", "dbf")}
with shapefile.Writer(**parts) as writer:
    writer.field("bssid", "C", 17)
    writer.field("rssi", "N", 6, 1)
    writer.field("freq_mhz", "N", 6)
    writer.field("time", "C", 20)
    for line in lines:
        writer.point(line["lon"], line["lat"])
        writer.record(line["bssid"], line["rssi"], line["freq_mhz"], str(line["time"]))
WGS84 = 'GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],' \
        'PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]]'
with zipfile.ZipFile("survey.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for name, part in parts.items():
        archive.writestr(f"survey.{name}", part.getvalue())
    archive.writestr("survey.prj", WGS84)

kml = simplekml.Kml()
for line in lines:
    point = kml.newpoint(name=str(line["rssi"]), coords=[(line["lon"], line["lat"])])
    point.timestamp.when = moment(line).isoformat() + "Z"
    point.description = f"BSSID: {line['bssid']}<br/>freq_mhz: {line['freq_mhz']}"
    point.extendeddata.newdata("rssi", str(line["rssi"]))
kml.savekmz("survey.kmz")


def database(name):
    open(name, "wb").close()
    base = sqlite3.connect(name)
    base.execute("PRAGMA page_size = 512")
    return base


base = database("survey.gpkg")
base.execute("PRAGMA application_id = 1196444487")
base.executescript("""
CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT NOT NULL, srs_id INTEGER NOT NULL PRIMARY KEY,
    organization TEXT NOT NULL, organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL);
INSERT INTO gpkg_spatial_ref_sys VALUES ('WGS 84', 4326, 'EPSG', 4326, 'GEOGCS');
CREATE TABLE gpkg_geometry_columns (table_name TEXT NOT NULL, column_name TEXT NOT NULL,
    geometry_type_name TEXT NOT NULL, srs_id INTEGER NOT NULL, z TINYINT NOT NULL, m TINYINT NOT NULL);
INSERT INTO gpkg_geometry_columns VALUES ('survey', 'geom', 'POINT', 4326, 0, 0);
CREATE TABLE "survey" ("fid" INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "geom" POINT, "bssid" TEXT(17),
    "rssi" REAL, "freq_mhz" MEDIUMINT, "time" INTEGER, "note" TEXT);
""")
for line in lines:
    blob = b"GP\0\1" + struct.pack("<i", 4326) + struct.pack("<BIdd", 1, 1, line["lon"], line["lat"])
    # The note of the first place needs pages of its own.
    note = "n" * 600 if line["lat"] == lines[0]["lat"] else None
    row = (blob, line["bssid"], line["rssi"], line["freq_mhz"], line["time"], note)
    base.execute("INSERT INTO survey (geom, bssid, rssi, freq_mhz, time, note) VALUES (?,?,?,?,?,?)", row)
base.commit()
base.execute("DELETE FROM survey WHERE fid > 1000")
base.close()

base = database("survey.kismet")
base.execute("CREATE TABLE KISMET (kismet_version TEXT, db_version INT, db_module TEXT)")
base.execute("CREATE TABLE packets (ts_sec INT, ts_usec INT, phyname TEXT, sourcemac TEXT, destmac TEXT, "
             "transmac TEXT, frequency REAL, devkey TEXT, lat REAL, lon REAL, alt REAL, speed REAL, "
             "heading REAL, packet_len INT, signal INT, datasource TEXT, dlt INT, packet BLOB, "
             "error INT, tags TEXT)")
for line in lines + [dict(lines[0], lat=0, lon=0)]:
    base.execute(f"INSERT INTO packets VALUES ({','.join('?' * 20)})", (
        line["time"], 0, "IEEE802.11", line["bssid"], "ff", line["bssid"], 1e3 * line["freq_mhz"], "k",
        line["lat"], line["lon"], 100.0, 0, 0, 60, line["rssi"], "u", 127, b"\0" * 60, 0, ""))
base.commit()
base.close()
