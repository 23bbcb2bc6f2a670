"""What each SVG that offbeat or its page makes must be: well-formed, without dangerous characters, without anything that a browser executes
or loads but the scripts that are expected. SPDX-License-Identifier: MIT"""
import re
import xml.etree.ElementTree as ElementTree

from tap import check, check_equal

NAMESPACE = "{http://www.w3.org/2000/svg}"
DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def elements(svg, *names):
    """The elements of SVG, bytes or text, with one of NAMES, or all of them."""
    return [each for each in ElementTree.fromstring(svg).iter() if not names or each.tag.removeprefix(NAMESPACE) in names]


def texts(svg, *names):
    """The strings that a reader sees: texts and tooltips."""
    return [each.text or "" for each in elements(svg, *(names or ("text", "title")))]


def check_harmless(svg, script_count=0):
    """Checks all of SVG; its own scripts are SCRIPT_COUNT."""
    all_ = elements(svg)
    names = [each.tag.removeprefix(NAMESPACE) for each in all_]
    check_equal(names.count("script"), script_count, "scripts")
    for each in all_:
        for name, value in each.attrib.items():
            name = name.rsplit("}", 1)[-1].lower()
            check(not name.startswith("on") and name != "href", f"the attribute {name}")
            check(not DANGEROUS.search(value), f"a dangerous character in {name}: {value[:80]!r}")
        check(each.tag == NAMESPACE + "script" or not DANGEROUS.search(each.text or ""), f"a dangerous character: {each.text!r:.80}")
