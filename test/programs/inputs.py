"""Inputs of the programs: files of the kinds that they read, the same bytes each time. SPDX-License-Identifier: MIT"""
import json
import math
import pathlib
import random
import struct
import sys
import wave

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from common import large_source  # noqa: E402

WORDS = 120_000
ROWS = 40_000
PICTURE_SIDE = 700
SOUND_SECONDS = 20
SOUND_HZ = 44_100
TREE_FILES = 400
LARGE_FUNCTIONS = 80


def make_words(chance):
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    known = ["".join(chance.choices(letters, k=chance.randint(2, 11))) for _ in range(5000)]
    return [known[min(int(chance.expovariate(1 / 700)), 4999)] for _ in range(WORDS)]


def write_texts(folder, words, chance):
    lines = [" ".join(words[i:i + 12]) for i in range(0, len(words), 12)]
    (folder / "text.txt").write_text("\n".join(lines * 6) + "\n", encoding="ascii")
    (folder / "words.txt").write_text("\n".join(words * 3) + "\n", encoding="ascii")
    rows = [{"id": i, "name": words[i], "amount": round(chance.uniform(0, 1000), 2), "tags": words[i:i + 3]} for i in range(ROWS)]
    (folder / "rows.json").write_text(json.dumps(rows), encoding="ascii")
    (folder / "rows.csv").write_text("".join(f"{row['id']},{row['name']},{row['amount']}\n" for row in rows), encoding="ascii")
    (folder / "rows.xml").write_text("<rows>" + "".join(
        f"<row id='{row['id']}'><name>{row['name']}</name><amount>{row['amount']}</amount></row>\n" for row in rows) + "</rows>",
        encoding="ascii")
    (folder / "rows.sql").write_text("begin; create table rows (id integer primary key, name text, amount real);\n" + "".join(
        f"insert into rows values ({row['id']}, '{row['name']}', {row['amount']});\n" for row in rows) + "commit;\n", encoding="ascii")
    (folder / "rows.md").write_text("".join(f"# Row {row['id']}\n\n*{row['name']}* costs **{row['amount']}**, see `{row['tags'][1]}`.\n\n- "
                                            + "\n- ".join(row["tags"]) + "\n\n" for row in rows[:2500]), encoding="ascii")


def write_picture(folder, chance):
    pixels = bytearray()
    for y in range(PICTURE_SIDE):
        for x in range(PICTURE_SIDE):
            pixels += bytes(((x * y >> 4) & 255, int(127 + 120 * math.sin(x / 30)), chance.getrandbits(5) + (y & 127)))
    (folder / "picture.ppm").write_bytes(b"P6 %d %d 255\n" % (PICTURE_SIDE, PICTURE_SIDE) + pixels)


def write_sound(folder, chance):
    samples = [int(9000 * math.sin(i / 20) + 6000 * math.sin(i / 7.3)) + chance.getrandbits(9) for i in range(SOUND_SECONDS * SOUND_HZ)]
    with wave.open(str(folder / "sound.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(SOUND_HZ)
        sound.writeframes(struct.pack(f"<{len(samples)}h", *samples))


def write_tree(folder, words, chance):
    for i in range(TREE_FILES):
        place = folder / "tree" / f"d{i % 20}"
        place.mkdir(parents=True, exist_ok=True)
        text = "\n".join(" ".join(chance.choices(words, k=10)) for _ in range(200))
        (place / f"f{i}.txt").write_text(text, encoding="ascii")


def write_inputs(folder):
    """Fills FOLDER, which every user may read."""
    chance = random.Random(12)
    words = make_words(chance)
    write_texts(folder, words, chance)
    write_picture(folder, chance)
    write_sound(folder, chance)
    write_tree(folder, words, chance)
    large_source(folder / "large.c", LARGE_FUNCTIONS)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
