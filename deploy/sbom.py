"""Write the bill of materials of what is shipped as CycloneDX 1.6: sbom.py OUT.json DIST

It names the files in DIST with their hashes, what of others is linked into them (parts.py reads it from the linker's
maps), in which version and under which licence, and the Python packages that they need. Two runs give equal bytes.
"""
import datetime
import hashlib
import json
import os
import pathlib
import re
import sys
import tomllib
import uuid

import fetch
import parts

TOP = pathlib.Path(__file__).resolve().parents[1]
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "1577836800"))
SPACE = uuid.UUID("2a2f6d3e-0b0a-5d0c-9a60-6f0d5a1c7a10")  # for the serial number, which follows from the content
PROJECTS = {"arrayd": "pyproject.toml", "arrayd-server": "deploy/wheels/server/pyproject.toml",
            "arrayd-cuda13": "deploy/wheels/cuda13/pyproject.toml"}
# The product that a file in DIST is, by how its name begins.
FILES = ((r"arrayd_server-", "arrayd-server"), (r"arrayd_cuda13-", "arrayd-cuda13"), (r"arrayd-cuda13_", "arrayd-cuda13"),
         (r"arrayd-.*\.(whl|tar\.gz)", "arrayd"), (r"python3-arrayd_", "arrayd"), (r"arrayd_.*\.deb", "arrayd-server"),
         (r"libarrayd", "libarrayd"))


def find_version():
    """The version of arrayd."""
    return re.search(r"^VERSION := (\S+)", (TOP / "Makefile").read_text(), re.M)[1]


def describe_licence(expression):
    """A licence in CycloneDX's form."""
    if expression.startswith("LicenseRef-"):
        return [{"license": {"name": expression.removeprefix("LicenseRef-")}}]
    if " " in expression:
        return [{"expression": expression}]
    return [{"license": {"id": expression}}]


def describe_part(part):
    """A piece of software of others, as a component."""
    component = {"type": "library", "bom-ref": f"part:{part.name}", "name": part.name,
                 "licenses": describe_licence(part.licence),
                 "externalReferences": [{"type": "website", "url": part.site}]}
    package = next((p for p in part.debian if parts.find_version(p)), None)
    if package:
        component["version"] = parts.find_version(package)
        component["purl"] = f"pkg:deb/debian/{package}@{component['version'].replace('+', '%2B')}?distro=debian-12"
    elif part.source:
        version, digest = next((v, d) for name, v, d, _ in fetch.SOURCES if name == part.source)
        component["version"] = version
        component["purl"] = f"pkg:pypi/{part.source}@{version}"
        component["hashes"] = [{"alg": "SHA-256", "content": digest}]
        component["description"] = f"headers from the source distribution of {part.source} {version}"
    if part.why:
        component["properties"] = [{"name": "arrayd:licence", "value": part.why}]
    return component


def describe_product(product, version):
    """A package of ours, as a component."""
    path = PROJECTS.get(product)
    licence = tomllib.loads((TOP / path).read_text())["project"]["license"] if path else "MIT"
    return {"type": "application" if product == "arrayd-server" else "library", "bom-ref": f"product:{product}",
            "name": product, "version": version, "licenses": describe_licence(licence)}


def find_product(file):
    """The product that a file in DIST is, or None."""
    return next((product for pattern, product in FILES if re.match(pattern, file)), None)


def describe_file(path):
    """A file of DIST, as a component."""
    return {"type": "file", "bom-ref": f"file:{path.name}", "name": path.name,
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}]}


def list_requirements():
    """The Python packages that ours need, by product: component, name."""
    for product, path in PROJECTS.items():
        for text in tomllib.loads((TOP / path).read_text())["project"].get("dependencies", []):
            name = re.match(r"[\w.-]+", text)[0]
            yield product, {"type": "library", "bom-ref": f"python:{name}", "name": name, "scope": "required",
                            "purl": f"pkg:pypi/{name}", "description": f"not contained; needed as {text}"}


def make_bill(dist):
    """The document as a dict."""
    version = find_version()
    products = [p for p, files in parts.PRODUCTS.items() if all((parts.BUILT / f).exists() for f in files)]
    inside = {product: parts.find_product_parts(product) for product in products}
    files = [path for path in sorted(dist.iterdir()) if find_product(path.name) in products]
    needed = [(product, component) for product, component in list_requirements() if product in products]
    components = [describe_product(product, version) for product in products]
    components += [describe_part(part) for part in parts.PARTS if any(part in found for found in inside.values())]
    components += [component for _, component in needed] + [describe_file(path) for path in files]
    depends = [{"ref": f"product:{product}", "dependsOn": sorted(
        {f"part:{part.name}" for part in inside[product]} | {c["bom-ref"] for p, c in needed if p == product})}
        for product in products]
    depends += [{"ref": f"file:{path.name}", "dependsOn": [f"product:{find_product(path.name)}"]} for path in files]
    time = datetime.datetime.fromtimestamp(EPOCH, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    root = {"type": "application", "bom-ref": "arrayd-release", "name": "arrayd", "version": version,
            "licenses": describe_licence("MIT")}
    depends.append({"ref": "arrayd-release", "dependsOn": [f"product:{product}" for product in products]})
    bill = {"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6",
            "version": 1, "metadata": {"timestamp": time, "component": root}, "components": components,
            "dependencies": depends}
    return {**bill, "serialNumber": f"urn:uuid:{uuid.uuid5(SPACE, json.dumps(bill, sort_keys=True))}"}


def main():
    """Write the bill."""
    out, dist = map(pathlib.Path, sys.argv[1:])
    out.write_text(json.dumps(make_bill(dist), indent=1, sort_keys=True) + "\n")
    print(out)


if __name__ == "__main__":
    main()
