"""Chromium without a window, as tests and pictures of the report want it: what its console says and what it asks a
network for is kept."""

import json
import shutil


class Missing(Exception):
    """What is not installed."""


class Browser:
    def __init__(self):
        try:
            from selenium import webdriver
            from selenium.webdriver.chrome.service import Service
        except ImportError as error:
            raise Missing("no python3-selenium (jobs/setup.sh --tests installs it)") from error
        program, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if not program or not driver:
            raise Missing("no chromium or chromium-driver (jobs/setup.sh --tests installs them)")
        options = webdriver.ChromeOptions()
        options.binary_location = program
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--disable-dev-shm-usage",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(driver))
        self.driver.set_page_load_timeout(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()

    def run(self, script, *arguments):
        return self.driver.execute_script("return " + script, *arguments)

    def resize(self, width, height=900):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def media(self, **features):
        """media="print", or prefers_color_scheme="dark" """
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {
                "media": features.pop("media", ""),
                "features": [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()],
            },
        )

    def open(self, file, width=1280):
        self.resize(width)
        self.driver.get(f"file://{file}")

    def picture(self, name, width, most=20000, height=None):
        """All of the page at this width, or its upper part."""
        self.resize(width)
        self.resize(width, height or min(most, self.run("document.documentElement.scrollHeight")))
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self.driver.save_screenshot(str(name))

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """What was asked for since the last call, without the page itself and what it holds."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        urls = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("file:", "data:", "chrome:", "about:"))]
