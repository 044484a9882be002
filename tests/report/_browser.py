"""A page in headless Chromium, driven through its debugging protocol."""

import asyncio
import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.request

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def drive(page, profile, width, steps):
    """Opens the file; each step is an expression to evaluate, or a function of the last value that gives a point to
    click. Returns the values, and the errors of the console."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    chromium = subprocess.Popen(
        [CHROMIUM, *options, f"--remote-debugging-port={port}", "about:blank"], stderr=subprocess.DEVNULL
    )
    try:
        return asyncio.run(_drive(port, page.as_uri(), width, steps))
    finally:
        chromium.kill()
        chromium.wait()


async def _drive(port, address, width, steps):
    from tornado.websocket import websocket_connect

    pages = []
    for _ in range(120):
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
                pages = json.load(answer)
            break
        time.sleep(0.5)
    target = next(page for page in pages if page["type"] == "page")
    socket = await websocket_connect(target["webSocketDebuggerUrl"], max_message_size=1 << 28)
    errors, values, count = [], [], 0

    async def call(method, **parameters):
        nonlocal count
        count, mine = count + 1, count + 1
        await socket.write_message(json.dumps({"id": mine, "method": method, "params": parameters}))
        while True:
            answer = json.loads(await socket.read_message())
            said = answer.get("params", {})
            if answer.get("method") == "Runtime.exceptionThrown" or said.get("type") == "error":
                errors.append(said)
            if answer.get("id") == mine:
                return answer.get("result", answer)

    for method in ("Page.enable", "Runtime.enable", "Log.enable"):
        await call(method)
    await call("Emulation.setDeviceMetricsOverride", width=width, height=1500, deviceScaleFactor=1, mobile=False)
    await call("Page.navigate", url=address)
    for step in steps:
        if callable(step):
            x, y = step(values[-1])
            for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
                button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
                await call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)
            await asyncio.sleep(1)
            continue
        for _ in range(60):  # until the page has an answer
            found = (await call("Runtime.evaluate", expression=step, returnByValue=True))["result"]
            if found.get("value") is not None:
                break
            await asyncio.sleep(0.5)
        values.append(found.get("value"))
    socket.close()
    while await socket.read_message() is not None:  # until the other side has closed it, too
        pass
    return values, errors
