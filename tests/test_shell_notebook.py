"""A notebook whose cells display things as those of bash_kernel do, run by nbclient and exported by nbconvert."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from homes import own_home
from session_magics.kernel import specs

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]

RUN = """
import json, sys, nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter, MarkdownExporter
book = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(book, timeout=60, iopub_timeout=60, allow_errors=True).execute()
nbformat.write(book, sys.argv[1])
exported = [exporter().from_notebook_node(book)[0] for exporter in (HTMLExporter, MarkdownExporter)]
print(json.dumps(exported))
"""
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CELLS = (
    f"echo {DOT} | base64 -d > dot.png\ncat dot.png | display\necho shown",
    """plot() {
  echo "<svg xmlns='http://www.w3.org/2000/svg'><rect width='$1' height='9'/></svg>" | display "$2"
}
bar="bar_$RANDOM"
for width in 10 20 30; do plot $width "$bar"; printf "$width%%\\r"; sleep 0.1; done""",
    """display_id="id_${RANDOM}"
((ii=0))
while ((ii < 4)) ; do
    echo "<div>step ${ii}</div>" | displayHTML $display_id
    ((ii = ii+1))
done
echo "<p>text of its own</p>" | displayHTML""",
    """echo "console.log('one')" | displayJS log; echo "console.log('two')" | displayJS log; cd /; ls no-such-file""",
)


def test_a_notebook_with_displays_runs_unchanged_and_is_faithful_when_it_is_exported(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_home(tmp_path, monkeypatch)
    specs.install(specs.directory(None), ["session-bash"])
    kernelspec = {"name": "session-bash", "display_name": "bash", "language": "bash"}
    cells = [nbformat.v4.new_code_cell(one) for one in CELLS]
    path = tmp_path / "book.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernelspec}), path)
    ran = subprocess.run([sys.executable, "-c", RUN, str(path)], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    page, markdown = json.loads(ran.stdout)

    outputs = [cell.outputs for cell in nbformat.read(path, as_version=4).cells]
    image, text, line = outputs[0]
    assert image.data["image/png"] == DOT and text.text == "shown\n"
    assert re.fullmatch(r"~ · ✓ 0 · [\d.]+m?s", line.data["text/plain"])
    svg, text, _ = outputs[1]
    assert "<rect width='30'" in svg.data["image/svg+xml"] and text.text == "30%"
    assert [one.data["text/html"] for one in outputs[2][:2]] == ["<div>step 3</div>\n", "<p>text of its own</p>\n"]
    script, complaint, line, error = outputs[3]
    assert script.data["application/javascript"] == "console.log('two')\n" and "no-such-file" in complaint.text
    assert line.data["text/plain"].startswith("/ · ✗ 2 · ") and error.output_type == "error"

    assert DOT in page and "data:image/svg+xml;base64" in page and "<div>step 3</div>" in page and "step 2" not in page
    assert page.count(">✓ 0</span>") == 3 and ">✗ 2</span>" in page
    assert "shown" in markdown and "step 3" in markdown and markdown.count("✓ 0") == 3
    assert "\x1b" not in page + markdown
