"""Opens a page in a browser without a window, and presses one of its buttons as soon as it is there and can be pressed.

    press.py BROWSER PROFILE URL LINE     the button whose data-line is LINE; prints what the page says of it then

Exits 0, or 77 where the browser cannot be started here.
"""
import json
import os
import subprocess
import sys

browser, profile, url, line = sys.argv[1:]
# Resolves when the button has been pressed and the page has told what came of it.
PRESS = """new Promise(done => {
  const line = %s;
  let pressed = false;
  const look = () => {
    const b = [...document.querySelectorAll('button')].find(b => b.dataset.line === line && !b.disabled);
    const answer = document.getElementById('answer');
    if (b && !pressed) { pressed = true; b.click(); return; }
    if (!pressed || !answer || answer.className === 'soft' || !answer.textContent.startsWith(line + ': ')) return;
    watch.disconnect();
    done(answer.textContent);
  };
  const watch = new MutationObserver(look);
  watch.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  look();
})""" % json.dumps(line)

to_browser, our_out = os.pipe()
our_in, from_browser = os.pipe()


def prepare():
    os.dup2(to_browser, 100), os.dup2(from_browser, 101)
    os.dup2(100, 3), os.dup2(101, 4)


flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
child = subprocess.Popen([browser, *flags, "about:blank"], preexec_fn=prepare, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
os.close(to_browser), os.close(from_browser)
number, rest = 0, b""


def read():
    global rest
    while b"\0" not in rest:
        part = os.read(our_in, 1 << 16)
        if not part:
            print(f"{browser} cannot be started here")
            sys.exit(77)
        rest += part
    text, rest = rest.split(b"\0", 1)
    return json.loads(text)


def ask(method, session=None, until=None, **params):
    """The answer to one command; with until, when that event has come as well."""
    global number
    number += 1
    asked = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
    os.write(our_out, json.dumps(asked).encode() + b"\0")
    result = None
    while result is None or until:
        answer = read()
        if answer.get("id") == number:
            if "error" in answer:
                sys.exit(f"{method}: {answer['error']['message']}")
            result = answer["result"]
        elif answer.get("method") == until:
            until = None
    return result


try:
    target = ask("Target.createTarget", url="about:blank")["targetId"]
    session = ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    ask("Page.enable", session)
    ask("Page.navigate", session, until="Page.loadEventFired", url=url)
    said = ask("Runtime.evaluate", session, awaitPromise=True, expression=PRESS)
    print(said["result"].get("value", said))
finally:
    child.kill()
    child.wait()
