"""The Helm chart: Helm's own library finds no fault with it, and what it renders is the manifest of deploy/kubernetes."""
import json
import re

import kubernetes_validate
import pytest
import yaml

from commands import BUILD, TOP, run

helm = pytest.importorskip("helm_python")
CHART = TOP / "deploy/helm/arrayd"
VALUES = {
    "plain": {}, "dra": {"gpus": {"by": "dra"}}, "cpu": {"gpus": {"by": "none"}, "nodeSelector": None, "tolerations": None},
    "users": {"principals": "uid:* memory=8G sessions=16\nuid:1000 memory=64G\n", "image": {"tag": "9.9", "pullSecrets": [{"name": "s"}]},
              "gpus": {"count": 8}, "socketFolder": "/srv/arrayd"},
}


def render(values, namespace="arrayd"):
    """The rendered objects by kind."""
    texts = helm.Chart.load(CHART).render(values, name="arrayd", namespace=namespace)
    objects = [each for name, text in texts.items() if name.endswith(".yaml") for each in yaml.safe_load_all(text) if each]
    assert len({each["kind"] for each in objects}) == len(objects)
    return {each["kind"]: each for each in objects}


@pytest.mark.parametrize("name", VALUES)
def test_helm_finds_no_fault(name):
    found = helm.lint(CHART, VALUES[name], strict=True, namespace="arrayd")
    assert found["errors"] == [] and {m["error"] for m in found["messages"]} <= {"icon is recommended"}, found


def test_helm_finds_faults():
    with pytest.raises(helm.HelmError):
        helm.Chart.load(CHART).validate_schema({"gpus": {"by": "magic"}})


@pytest.mark.parametrize("name", VALUES)
def test_objects_follow_the_schemas(name):
    for kind, each in render(VALUES[name]).items():
        kubernetes_validate.validate(each, "1.34", strict=True)


def _without(labels):
    return {name: value for name, value in (labels or {}).items() if not name.endswith("/instance")}


def test_it_renders_the_manifest():
    """The chart renders the manifest but for the names of its release, as there is one list of what a server needs."""
    rendered = render({})
    manifest = {each["kind"]: each for each in yaml.safe_load_all((TOP / "deploy/kubernetes/arrayd.yaml").read_text())}
    mine, other = rendered["DaemonSet"]["spec"], manifest["DaemonSet"]["spec"]
    mine["selector"]["matchLabels"] = _without(mine["selector"]["matchLabels"])
    mine["template"]["metadata"] = {"labels": _without(mine["template"]["metadata"]["labels"])}
    for container in (*mine["template"]["spec"]["containers"], *mine["template"]["spec"]["initContainers"]):
        assert container.pop("imagePullPolicy") == "IfNotPresent"
    assert mine == other
    options = [[line for line in each["ConfigMap"]["data"]["arrayd.conf"].splitlines() if line and not line.startswith("#")]
               for each in (rendered, manifest)]
    assert options[0] == options[1] and set(rendered) == set(manifest) - {"Namespace"}


def test_versions_are_that_of_the_build():
    version = re.search(r"^VERSION := (\S+)$", (TOP / "Makefile").read_text(), re.M)[1]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == version
    images = {image for path in (TOP / "deploy/kubernetes").glob("*.yaml") for image in re.findall(r"image: (\S+)", path.read_text())}
    assert images == {f"arrayd:{version}", f"arrayd-client:{version}"}


def test_gpus():
    def server(name):
        return render(VALUES[name])["DaemonSet"]["spec"]["template"]["spec"]
    assert server("users")["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 8
    assert server("users")["containers"][0]["image"] == "arrayd:9.9" and server("users")["imagePullSecrets"] == [{"name": "s"}]
    dra = server("dra")
    assert dra["containers"][0]["resources"]["claims"] == [{"name": "gpus"}] == [{"name": c["name"]} for c in dra["resourceClaims"]]
    assert dra["resourceClaims"][0]["resourceClaimTemplateName"] == render(VALUES["dra"])["ResourceClaimTemplate"]["metadata"]["name"]
    cpu = json.dumps(server("cpu"))
    assert "nvidia" not in cpu and "claims" not in cpu


@pytest.mark.parametrize("name", VALUES)
def test_the_server_takes_the_configuration(name, tmp_path):
    rendered = render(VALUES[name])
    data = rendered["ConfigMap"]["data"]
    arguments = [f"--{key.strip()}={value.strip()}" for key, value in
                 (line.split("=", 1) for line in data["arrayd.conf"].splitlines() if line.strip() and not line.startswith("#"))]
    assert ("principals" in data) == ("--principals=/etc/arrayd/principals" in arguments) == (name == "users")
    run(BUILD / "bin/arrayd", *arguments, *rendered["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]["args"], "--help")
