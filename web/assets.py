#!/usr/bin/env python3
"""Bundles the page and writes its files, compressed, as C constants.

    assets.py ESBUILD ENTRY STYLE OUTPUT        ESBUILD "-": no page

SPDX-License-Identifier: MIT"""
import base64
import gzip
import hashlib
import pathlib
import subprocess
import sys

HTML = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>offbeat</title>
<link rel="stylesheet" href="{style}">
<body>
<script src="{script}"></script>
</body>
</html>
"""


def bundle(esbuild, path, *options):
    done = subprocess.run([esbuild, "--bundle", "--minify", "--charset=utf8", "--target=es2020", "--log-level=warning",
                           *options, path], check=True, stdout=subprocess.PIPE)
    return done.stdout.strip()


def hashed_name(content, ending):
    return f"page-{hashlib.sha256(content).hexdigest()[:16]}.{ending}"


def csp_hash(content):
    return f"'sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}'"


def constant(name, content):
    packed = gzip.compress(content, 9, mtime=0)
    rows = [",".join(map(str, packed[start:start + 40])) for start in range(0, len(packed), 40)]
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(rows) + "};\n"


def main():
    esbuild, entry, style_path, output = sys.argv[1:]
    text = '#include "page/page_assets.h"\n'
    rows = '{"", "", "", 0, 0}, ' * 3
    if esbuild != "-":
        script, style = bundle(esbuild, entry, "--format=iife"), bundle(esbuild, style_path)
        if b"</script" in script or b"</style" in style or b"<!--" in script:
            sys.exit("assets.py: the bundle has text that would end the element that it is in")
        names = [hashed_name(style, "css"), hashed_name(script, "js")]
        page = HTML.format(style=names[0], script=names[1]).encode()
        text += constant("page", page) + constant("style", style) + constant("script", script)
        rows = f"""{{"", "text/html; charset=utf-8", "", page, sizeof(page)}},
    {{"{names[0]}", "text/css; charset=utf-8", "{csp_hash(style)}", style, sizeof(style)}},
    {{"{names[1]}", "text/javascript; charset=utf-8", "{csp_hash(script)}", script, sizeof(script)}},"""
    text += f"const struct embedded_file embedded_files[EMBEDDED_FILES] = {{\n    {rows}\n}};\n"
    pathlib.Path(output).write_text(text, encoding="utf-8")


main()
