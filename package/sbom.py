#!/usr/bin/env python3
"""Writes what Debian packages contain and depend on, as an SPDX 2.3 document. The same packages give the same document.

    sbom.py SECONDS PACKAGE.deb… >OUTPUT        SECONDS: the time of the source, since 1970

SPDX-License-Identifier: MIT"""
import datetime
import hashlib
import json
import pathlib
import re
import subprocess
import sys


def field(path, name):
    return subprocess.run(["dpkg-deb", "-f", path, name], check=True, capture_output=True, text=True).stdout.strip()


def spdx_id(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", text)


def names_in(depends):
    """The names of "a (>= 1), b | c": each with its version."""
    for part in re.split(r"[,|]", depends):
        found = re.match(r"\s*([a-z0-9.+-]+)(?::\w+)?(?:\s*\(([^)]*)\))?", part)
        if found:
            yield found[1], found[2] or ""


def checksum_of(path):
    return {"algorithm": "SHA256", "checksumValue": hashlib.sha256(path.read_bytes()).hexdigest()}


def package_of(path):
    name, version = field(path, "Package"), field(path, "Version")
    return {"SPDXID": spdx_id(name), "name": name, "versionInfo": version, "packageFileName": path.name,
            "supplier": f"Person: {field(path, 'Maintainer')}", "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "MIT", "licenseDeclared": "MIT", "copyrightText": "NOASSERTION", "checksums": [checksum_of(path)],
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:deb/debian/{name}@{version}?arch={field(path, 'Architecture')}"}]}


def dependency_of(name, version):
    return {"SPDXID": spdx_id(name), "name": name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
            "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", **({"versionInfo": version} if version else {}),
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:deb/debian/{name}"}]}


def relation(first, kind, second):
    return {"spdxElementId": first, "relationshipType": kind, "relatedSpdxElement": second}


def main(seconds, *paths):
    packages = {one["name"]: one for one in map(package_of, map(pathlib.Path, sorted(paths)))}
    own = list(packages)
    relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", packages[name]["SPDXID"]) for name in own]
    for path in sorted(paths):
        package = spdx_id(field(path, "Package"))
        needed, recommended = list(names_in(field(path, "Depends"))), list(names_in(field(path, "Recommends")))
        for name, version in needed + recommended:
            packages.setdefault(name, dependency_of(name, version))
        relations += [relation(package, "DEPENDS_ON", spdx_id(name)) for name, _ in needed]
        relations += [relation(spdx_id(name), "OPTIONAL_DEPENDENCY_OF", package) for name, _ in recommended]
    contents = hashlib.sha256("".join(packages[name]["checksums"][0]["checksumValue"] for name in own).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    json.dump({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "offbeat",
               "documentNamespace": f"https://spdx.org/spdxdocs/offbeat-{contents}",
               "creationInfo": {"created": created, "creators": ["Tool: offbeat package/sbom.py"]},
               "packages": [packages[name] for name in packages], "relationships": relations}, sys.stdout, indent=1)
    print()


main(*sys.argv[1:])
