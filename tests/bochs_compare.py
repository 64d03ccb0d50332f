"""Compares what the kernel's log expects of each touch with the memory type Bochs printed for it.

bochs_compare.py MODEL SERIAL TRACE
Exit code 0: the run is complete, and every touch whose type the manuals give has the expected one, reads and writes alike, but for
the cells named below, where Bochs departs from the manuals in a known way. Undefined overlaps are listed and decide nothing.
"""

import re
import sys

EXPECT = re.compile(
    r"oracle touch=(?P<touch>\d+) group=(?P<group>\w+) linear=0x(?P<linear>\w+) phys=0x(?P<phys>\w+) mtrr=(?P<mtrr>\S+) "
    r"pat=(?P<pat>\S+) slot=\d expect=(?P<expect>\w+) standing=(?P<standing>\S+) layout=(?P<layout>.+)"
)
ACCESS = re.compile(
    r"\[CPU0 (?P<kind>RD|WR)\]: LIN 0x(?P<linear>[0-9a-f]+) PHY 0x(?P<phys>[0-9a-f]+) \(len=8, (?P<type>[^)]*)\)", re.IGNORECASE
)
COLUMNS = ["UC", "WC", "WT", "WP", "WB", "UC-"]
ROWS = ["UC", "WC", "WT", "WP", "WB"]
LEAST_LAYOUTS = 20

# (MTRR, PAT, what Bochs says): why that is not what the manuals say.
DEPARTURES = {
    ("WT", "WP", "WT"): "Bochs takes the lower encoding of the two; Intel's table has WP, AMD's CD",
    ("WP", "UC-", "UC"): "in Bochs UC- gives way to an MTRR of type WC only; Intel's table has WC",
    ("WP", "WT", "WT"): "Bochs takes the lower encoding of the two; AMD's table has CD",
}


def read(path):
    with open(path, encoding="latin-1", newline="") as file:
        return file.read().replace("\r", "")


def seen_by_bochs(trace):
    """Types of reads and writes by (linear, physical) address; the log's places are used once each."""
    seen = {}
    for access in ACCESS.finditer(trace):
        key = int(access["linear"], 16), int(access["phys"], 16)
        seen.setdefault(key, {})[access["kind"]] = access["type"].strip()
    return seen


def main(model, serial_path, trace_path):
    serial = read(serial_path)
    seen = seen_by_bochs(read(trace_path))
    touches = [match.groupdict() for match in EXPECT.finditer(serial)]
    faults = []
    if "ALL DONE differ=0" not in serial:
        faults.append("the kernel did not come to its end")
    announced = re.search(r"oracle: (\d+) touches", serial)
    if not announced or int(announced[1]) != len(touches):
        faults.append(f"{len(touches)} touches in the log, not those the kernel counted")
    for touch in touches:
        key = int(touch["linear"], 16), int(touch["phys"], 16)
        got = seen.get(key, {})
        touch["got"] = got.get("RD", "?")
        if got.get("RD") != got.get("WR") or not got:
            touch["got"] = f"{got.get('RD', '?')}/{got.get('WR', '?')}"
        # Bochs has no CD: there it is UC.
        touch["agrees"] = touch["got"] == touch["expect"].replace("CD", "UC")

    pairs = {(touch["mtrr"], touch["pat"]): touch for touch in touches if touch["group"] == "pair"}
    print(f"Bochs, {model}: MTRR type (rows) under PAT type (columns); ours, or ours!Bochs where they differ; * not recommended")
    print("      " + "".join(f"{pat:8}" for pat in COLUMNS))
    for mtrr in ROWS:
        print(f"  {mtrr:4}" + "".join(f"{cell(pairs.get((mtrr, pat))):8}" for pat in COLUMNS))
    if len(pairs) != len(ROWS) * len(COLUMNS):
        faults.append(f"{len(pairs)} pairs of types, not {len(ROWS) * len(COLUMNS)}")

    layouts = {}
    for touch in touches:
        if touch["group"] == "overlap":
            layouts.setdefault(touch["layout"], []).append(touch)
    if len(layouts) < LEAST_LAYOUTS:
        faults.append(f"{len(layouts)} overlap layouts, fewer than {LEAST_LAYOUTS}")
    count(f"pairs ({len(pairs)} cells)", [touch for touch in touches if touch["group"] == "pair"])
    count(f"overlaps ({len(layouts)} layouts)", [touch for touch in touches if touch["group"] == "overlap"])
    faults += explain([touch for touch in touches if not touch["agrees"]])
    for fault in faults:
        print(f"FAILED {fault}")
    return 1 if faults else 0


def explain(differing):
    """Says why each differs; returns what nothing explains."""
    unexplained = []
    undefined = {}
    for touch in differing:
        where = f"{touch['layout']}: MTRR {touch['mtrr']}, PAT {touch['pat']}: ours {touch['expect']}, Bochs {touch['got']}"
        reason = DEPARTURES.get((touch["mtrr"], touch["pat"], touch["got"]))
        if touch["standing"] == "undefined" and touch["got"] in ROWS:
            undefined.setdefault((touch["expect"], touch["got"]), []).append(touch)
        elif reason and touch["group"] == "pair":
            print(f"  differs, known: {where}: {reason}")
        else:
            print(f"  DIFFERS: {where} ({touch['standing']})")
            unexplained.append(f"touch {touch['touch']} at {touch['phys']} differs")
    for (ours, bochs), touches in undefined.items():
        layouts = list(dict.fromkeys(touch["layout"] for touch in touches))
        print(
            f"  differs, no manual says: {len(touches)} touches where types collide: ours {ours} (the safe guess), "
            f"Bochs {bochs} (it ignores the MTRRs there): {'; '.join(layouts)}"
        )
    return unexplained


def cell(touch):
    if touch is None:
        return "-"
    star = "*" if touch["standing"] == "not-recommended" else ""
    return touch["expect"] + star + ("" if touch["agrees"] else "!" + touch["got"])


def count(what, touches):
    for standing in ["defined", "not-recommended", "undefined"]:
        some = [touch for touch in touches if touch["standing"] == standing]
        if some:
            agree = sum(touch["agrees"] for touch in some)
            print(f"  {what}, {standing}: {agree} of {len(some)} touches agree")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
