# Chromium driven through chromedriver (W3C WebDriver), for the tools that measure the console.
import itertools, json, os, re, subprocess, time, urllib.request


# Ports that the kernel gives to no connection. With port 0 chromedriver takes any for IPv6 and then the same one for
# IPv4, which may be in use.
numbers = itertools.count()


class Browser:
    """A browser without a screen; `close` ends it."""

    def __init__(self):
        self.session = None
        port = 20000 + (os.getpid() * 64 + next(numbers)) % 10000
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.PIPE, text=True)
        try:
            found = (re.search(r"successfully on port (\d+)", line) for line in self.driver.stdout)
            self.port = next(match.group(1) for match in found if match)
            arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
            options = {"alwaysMatch": {"goog:chromeOptions": {"args": arguments}}}
            self.session = "/session/" + self.ask("/session", {"capabilities": options})["sessionId"]
        except BaseException:
            self.close()
            raise

    def ask(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, kind, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, url):
        self.ask(f"{self.session}/url", {"url": url})

    def run(self, script, *arguments):
        return self.ask(f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def value(self, expression):
        return self.run(f"return {expression}")

    def comes(self, expression, seconds=30):
        """Waits until an expression is true in the page; False at the deadline."""
        end = time.monotonic() + seconds
        while not self.value(f"Boolean({expression})"):
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def close(self):
        try:
            if self.session:
                self.ask(self.session, method="DELETE")
        finally:
            self.driver.terminate()
            self.driver.wait()
