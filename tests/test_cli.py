"""The command line: what it says, and that it imports no more than it must."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import prismaio
import pytest
from prismaio import cli
from prismaio.settings import SETTINGS

PROGRAM = [sys.executable, "-c", "from prismaio.cli import main; main()"]


def prisma(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
        env=os.environ | environment,
    )


def on_a_terminal(*words: str) -> str:
    """What the program prints where its output is a terminal."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, *words], stdin=slave, stdout=slave, stderr=slave, env=os.environ
    ) as program:
        os.close(slave)
        said = b""
        try:
            while part := os.read(master, 4096):
                said += part
        except OSError:  # the terminal's other end is closed
            pass
        assert program.wait(30) == 0
    os.close(master)
    return said.decode()


def test_config_names_every_setting_its_value_and_its_origin() -> None:
    done = prisma("config", PRISMAIO_DEPTH="3", PRISMAIO_MEMORY="512MiB", PRISMAIO_DISABLE="1")
    assert done.returncode == 0
    lines = {line.split("  ")[0].strip(): line for line in done.stdout.splitlines()}
    assert set(lines) == {"setting", *(setting.name for setting in SETTINGS)}
    assert "512 MiB  environment (PRISMAIO_MEMORY)" in lines["memory"]
    assert "3        environment (PRISMAIO_DEPTH)" in lines["depth"]
    assert "yes" in lines["disable"]
    assert "2048     default" in lines["lookahead"]


def test_config_prints_json_for_programs() -> None:
    read = json.loads(prisma("config", "--json", PRISMAIO_MEMORY="1MiB").stdout)
    assert list(read) == [setting.name for setting in SETTINGS]
    assert read["memory"] == {
        "value": 1 << 20,
        "origin": "environment (PRISMAIO_MEMORY)",
        "variable": "PRISMAIO_MEMORY",
    }
    assert read["engine"]["value"] is None


def test_a_pipe_gets_plain_text_and_a_terminal_a_table() -> None:
    plain, framed = prisma("config").stdout, on_a_terminal("config")
    assert plain.isascii()
    assert "│ lookahead" in framed
    assert "PRISMAIO_LOOKAHEAD" in framed


def test_a_bad_setting_is_one_line_and_no_traceback() -> None:
    done = prisma("config", PRISMAIO_DETPH="3")
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("prismaio: PRISMAIO_DETPH")
    assert "PRISMAIO_DEPTH" in line


def test_the_version_is_printed() -> None:
    done = prisma("--version")
    assert (done.returncode, done.stdout) == (0, f"prismaio {prismaio.__version__}\n")


@pytest.mark.parametrize("words", [["--help"], ["-h"]])
def test_help_names_every_command_and_what_it_does(words: list[str]) -> None:
    done = prisma(*words)
    assert done.returncode == 0
    for name in cli.commands():
        (line,) = (line for line in done.stdout.splitlines() if line.startswith(f"  {name} "))
        assert len(line.split()) > 3


@pytest.mark.parametrize("name", cli.commands())
def test_every_command_explains_itself(name: str) -> None:
    done = prisma(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: prismaio {name} ")


def test_a_mistyped_command_is_an_error() -> None:
    done = prisma("cnofig")
    assert done.returncode == 2
    assert "cnofig" in done.stderr


def test_a_command_is_a_file_and_only_its_own_file_is_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "heavy.py").write_text("raise ImportError('imported for nothing')")
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    assert {"config", "heavy"} <= set(cli.commands())
    cli.make_app(["config", "--json"])
    with pytest.raises(ImportError, match="for nothing"):
        cli.make_app(["heavy"])
    with pytest.raises(ImportError, match="for nothing"):
        cli.make_app(["--help"])


def test_config_imports_no_framework() -> None:
    program = (
        "import sys; from prismaio.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    said = subprocess.check_output([sys.executable, "-c", program, "config"], text=True, timeout=30)
    loaded = set(said.splitlines()[-1].split())
    assert "prismaio" in loaded
    assert loaded & {"torch", "tensorflow", "jax", "numpy", "matplotlib", "rich"} == set()
