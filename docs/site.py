"""Build the documentation site: site.py OUT MADE. MADE is what docs/generate.py has written; a dead link is an error.

The site has the pages of the repository where they are, the reference and a gallery of the examples, and a search that works
without a network. Links to files that are no pages lead into the copy of them that goes along.
"""
import ast
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

TOP = pathlib.Path(__file__).resolve().parents[1]
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE")
FOLDERS = ("docs/guide", "docs/internals", "docs/examples", "docs/pictures", "protocol", "deploy")
GUIDES = "quick-start sharing remote notebooks kernels sparse performance differences c protocol administration".split()


def copy_pages(source, made):
    """Copy the pages and what they link to into a folder, in which they lie as in the repository."""
    for name in PAGES:
        shutil.copyfile(TOP / name, source / name)
    for folder in FOLDERS:
        shutil.copytree(TOP / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__", "licenses", "*.[ch]"))
    for page in (TOP / "docs").glob("*.md"):
        shutil.copyfile(page, source / "docs" / page.name)
    shutil.copytree(made, source / "reference", ignore=shutil.ignore_patterns("site", "man3", "completion"))


def copy_linked_files(source):
    """Copy the other files of the repository that pages link to."""
    for page in list(source.rglob("*.md")):
        for link in re.findall(r"\]\(([^)\s#]+)", page.read_text()):
            target = (page.parent / link).resolve()
            if "://" in link or target.exists() or source.resolve() not in target.parents:
                continue
            original = TOP / target.relative_to(source.resolve())
            if original.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(original, target)


def list_linked_folders(source):
    """Give each folder that a page links to a page of its own, which lists its files."""
    for page in list(source.rglob("*.md")):
        text = page.read_text()
        for link in set(re.findall(r"\]\(([^)\s#]+)\)", text)):
            folder = (page.parent / link).resolve()
            original = TOP / folder.relative_to(source.resolve()) if source.resolve() in folder.parents else None
            if "://" in link or not original or not original.is_dir():
                continue
            shutil.copytree(original, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
            if not (folder / "index.md").exists():
                files = sorted(path.name for path in original.iterdir() if path.is_file())
                (folder / "index.md").write_text(f"# {original.relative_to(TOP)}\n\n" +
                                                 "".join(f"- [{name}]({name})\n" for name in files))
            text = text.replace(f"]({link})", f"]({link.rstrip('/')}/index.md)")
        page.write_text(text)


def write_gallery(source):
    """A page of the examples: what each says of itself, and its code."""
    text = "# Examples\n\n![What they are measured by](../pictures/chart.svg)\n"
    for path in sorted((source / "docs/examples").rglob("*.py")):
        code = path.read_text()
        about = (ast.get_docstring(ast.parse(code)) or "").split("\n\n")[0]
        text += f"\n## {path.relative_to(source / 'docs/examples')}\n\n{about}\n\n```python\n{code}```\n"
    (source / "docs/examples/index.md").write_text(text)


def list_reference(source):
    """The pages of the reference by their titles."""
    pages = [page for page in sorted((source / "reference").rglob("*.md")) if page.name != "index.md"]
    return [{page.read_text().split("\n", 1)[0].removeprefix("# "): str(page.relative_to(source))} for page in pages]


def make_configuration(source, out):
    """Return what mkdocs is told."""
    titles = {path.stem: path.read_text().split("\n", 1)[0].removeprefix("# ") for path in
              (source / "docs/guide").glob("*.md")}
    internals = [f"docs/internals/{path.name}" for path in sorted((source / "docs/internals").glob("*.md"))]
    navigation = [{"arrayd": "README.md"},
                  {"Guides": ["docs/guide/README.md", *({titles[name]: f"docs/guide/{name}.md"} for name in GUIDES)]},
                  {"Examples": "docs/examples/index.md"},
                  {"Reference": ["reference/index.md", "docs/python.md", "docs/client-c.md", "docs/coverage.md",
                                 "docs/conformance.md", "docs/conformance-cuda.md", *list_reference(source)]},
                  {"Running it": ["docs/operations.md", "docs/performance.md", "SECURITY.md", "protocol/wire.md"]},
                  {"Inside": ["CONTRIBUTING.md", *internals]}, {"Changes": "CHANGELOG.md"}]
    return {"site_name": "arrayd", "docs_dir": str(source), "site_dir": str(out), "use_directory_urls": False,
            "theme": {"name": "mkdocs", "highlightjs": False, "nav_style": "light"}, "plugins": ["search"],
            "markdown_extensions": ["tables", "fenced_code", "toc"], "nav": navigation,
            "validation": {"links": {"not_found": "warn", "anchors": "warn", "absolute_links": "warn",
                                     "unrecognized_links": "ignore"}, "nav": {"omitted_files": "info"}}}


def build(out, made):
    """Build it; what mkdocs says when that fails."""
    with tempfile.TemporaryDirectory() as place:
        source = pathlib.Path(place, "source")
        source.mkdir()
        copy_pages(source, made)
        write_gallery(source)
        copy_linked_files(source)
        list_linked_folders(source)
        configuration = pathlib.Path(place, "mkdocs.yml")
        configuration.write_text(yaml.safe_dump(make_configuration(source, out), sort_keys=False))
        done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", configuration],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout if done.returncode else None


def main():
    """Build the site; 1 when a link is dead."""
    out, made = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    wrong = build(out, made)
    print(wrong or out / "index.html")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
