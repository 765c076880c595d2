"""Commands that start at once: a process that has imported everything forks one for each.

Most of a command's time goes into imports, and the tests run hundreds. `warm.py SOCKET` is that
process; `warm.py SOCKET WORD ...`, which imports next to nothing, hands it the words, the
folder, the environment and the three standard files, passes signals on, and ends as the command
does.
"""

import json
import os
import signal
import socket
import sys

_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SKIPPED = {"scrapy", "bench", "checks", "testing", "deep", "render", "__main__"}


def ask(path: str, words: list[str]) -> int:
    """Have a command run, and return its exit code."""
    told = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()  # noqa: PTH109 no imports
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        socket.send_fds(line, [len(told).to_bytes(4, "big")], [0, 1, 2])
        line.sendall(told)
        worker = int.from_bytes(line.recv(4, socket.MSG_WAITALL), "big")
        for number in _PASSED_ON:
            signal.signal(number, lambda number, _: os.kill(worker, number))
        code = int.from_bytes(line.recv(4, socket.MSG_WAITALL), "big", signed=True)
    if code < 0:  # it was killed, and so are we
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def serve(path: str) -> None:
    """Fork a process for each who asks, until killed."""
    _import_all()
    answering: set[int] = set()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen(64)
        while True:
            line, _ = door.accept()
            answering = {child for child in answering if os.waitpid(child, os.WNOHANG) == (0, 0)}
            if (child := os.fork()) == 0:
                door.close()
                os._exit(_answer(line))
            answering.add(child)
            line.close()


def _answer(line: socket.socket) -> int:
    head, files, _, _ = socket.recv_fds(line, 4, 3)
    told = line.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
    worker = os.fork()
    if worker == 0:
        line.close()
        _work(files, *json.loads(told))
    line.sendall(worker.to_bytes(4, "big"))
    _, status = os.waitpid(worker, 0)
    line.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
    return 0


def _work(files: list[int], words: list[str], folder: str, settings: dict[str, str]) -> None:
    """Be the command."""
    from salticus.cli import main

    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(settings)
    sys.argv = ["salticus", *words]
    code: object = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    except BaseException:  # as Python itself would
        sys.excepthook(*sys.exc_info())
        code = 1
    for file in (sys.stdout, sys.stderr):
        try:
            file.flush()
        except BrokenPipeError:
            code = 120
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _import_all() -> None:
    import asyncio
    import importlib
    import pkgutil

    import salticus
    from salticus.config import Config
    from salticus.crawl.warming import warm_up

    for module in pkgutil.walk_packages(salticus.__path__, "salticus."):
        if not _SKIPPED & {*module.name.split(".")}:
            importlib.import_module(module.name)
    asyncio.run(warm_up(Config()))  # what is compiled is loaded, too


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(sys.argv[1])
    else:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
