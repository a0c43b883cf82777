// Whether the console can be used by keyboard and with a screen reader, in a real browser.
import FixtureCDN
import ScenarioSupport
import Testing

@Suite(
    .serialized, .timeLimit(.minutes(5)), .tags(.players), .grouped,
    .enabled(if: Tool.exists("chromedriver"), "needs chromium-driver"))
struct ConsoleAccessibility {
    private static let views = ["play", "library", "network", "tools"]

    /// A page whose views all have content: a title, a download, a played stream, a report.
    private func filled(_ stage: Stage, isDark: Bool = false) throws -> Browser {
        let url = stage.cdn.url(Stream.transportStream.path)
        try stage.keepWhole(stage.through(.transportStream))
        let browser = try Browser(isDark: isDark)
        try browser.open(stage.daemon.baseURL + "/")
        #expect(try browser.comes("document.querySelector('.dot.connected')"))
        for (form, field) in [
            ("download-form", "download-url"), ("why-form", "why-url"),
            ("inspect-form", "inspect-url"),
        ] {
            try browser.run(
                """
                document.getElementById("\(field)").value = \(Browser.quoted(url));
                document.getElementById("\(form)").requestSubmit();
                """)
        }
        #expect(try browser.comes("document.querySelector('#why .lead')"))
        #expect(try browser.comes("document.querySelector('#inspect .listing button')"))
        return browser
    }

    /// Opens a view, waits for its content, and opens what is folded.
    private func open(_ view: String, in browser: Browser) throws {
        try browser.run("location.hash = '#\(view)'")
        #expect(try browser.comes("!document.getElementById('view-\(view)').hidden"))
        let content = [
            "library": "#titles tbody", "network": "#origins tbody", "tools": "#settings tbody",
        ]
        if let content = content[view] {
            #expect(try browser.comes("document.querySelector('\(content)')"))
        }
        if view == "library" {
            #expect(try browser.comes("document.querySelector('#downloads .item button')"))
        }
        try browser.run(
            "for (const one of document.querySelectorAll('#view-\(view) details')) one.open = true")
    }

    @Test func `each control has a name and a role, and the page has landmarks`() throws {
        let stage = try Stage()
        let browser = try filled(stage)
        for view in Self.views {
            try open(view, in: browser)
            let nodes = try browser.accessibilityTree()
            // The page itself and its content take the focus, and are no controls.
            let controls = nodes.filter {
                $0.isFocusable && !["RootWebArea", "main"].contains($0.role)
            }
            #expect(controls.count > 8, "\(view): \(controls.count)")
            #expect(controls.filter(\.name.isEmpty).map(\.role) == [], "\(view)")
            #expect(controls.filter { $0.role == "generic" || $0.role.isEmpty } == [], "\(view)")
            let roles = Set(nodes.map(\.role))
            #expect(
                roles.isSuperset(of: ["banner", "navigation", "main", "status", "alert"]),
                "\(view): \(roles.sorted())")
            // A list of buttons that are all called the same says nothing.
            let buttons = controls.filter { $0.role == "button" }.map(\.name)
            #expect(Set(buttons).count == buttons.count, "\(view): \(buttons)")
            let headings = nodes.filter { $0.role == "heading" }.map(\.name)
            #expect(headings.first?.lowercased() == view, "\(headings)")
        }
    }

    @Test func `Tab reaches each control in visual order, and shows a ring around it`() throws {
        let stage = try Stage()
        let browser = try filled(stage)
        try browser.run(Self.walk)
        for view in Self.views {
            try open(view, in: browser)
            try browser.run("window.beginWalk()")
            var steps = 0
            repeat {
                try browser.press("Tab")
                steps += 1
            } while try browser.value("window.step()") != "end" && steps < 200
            #expect(steps < 200)
            let faults = try browser.value("window.faults().join('; ')")
            #expect(faults == "", "\(view)")
            let missed = try browser.value("window.missed().join('; ')")
            #expect(missed == "", "\(view)")
        }
    }

    @Test func `the skip link leads to the content of the view that is shown`() throws {
        let stage = try Stage()
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#network")
        #expect(try browser.comes("!document.getElementById('view-network').hidden"))
        try browser.press("Tab")
        #expect(try browser.value("document.activeElement.className") == "skip")
        try browser.press("Enter")
        #expect(try browser.comes("document.activeElement.id === 'main'"))
        #expect(try browser.value("document.getElementById('view-network').hidden") == "false")
        #expect(try browser.value("document.title") == "Network · Sluice")
    }

    @Test func `a pressed button keeps the focus, and so does a list that is drawn again`() throws {
        let stage = try Stage()
        try stage.keepWhole(stage.through(.transportStream))
        let browser = try Browser()
        try browser.open(stage.daemon.baseURL + "/#library")
        let pin = "document.querySelector('#titles button[aria-label^=Pin]')"
        #expect(try browser.comes(pin))
        try browser.run("window.former = \(pin); window.former.focus()")
        try browser.press("Enter")
        // The list is another one; the focus is on the button at the same place.
        #expect(try browser.comes("!window.former.isConnected"))
        #expect(try browser.comes("document.activeElement.ariaLabel?.startsWith('Unpin ')"))
        #expect(try browser.value("document.getElementById('toast').innerText") != "")
    }

    @Test(arguments: [false, true])
    func `text and controls stand out from what is behind them`(_ isDark: Bool) throws {
        let stage = try Stage()
        let browser = try filled(stage, isDark: isDark)
        try browser.run(Self.contrast)
        for view in Self.views {
            try open(view, in: browser)
            let faint = try browser.value("window.faint().join('; ')")
            #expect(faint == "", "\(view)")
        }
        // The measure itself: a grey that is too light is found.
        try browser.run("document.querySelector('#why-title').style.color = '#999'")
        if !isDark {
            #expect(try browser.value("window.faint().length") == "1")
        }
    }

    /// Notes where the focus is after each Tab, and what is wrong with it.
    private static let walk = """
        let seen, last, faults;
        window.beginWalk = () => {
          seen = new Set(); last = null; faults = [];
          document.activeElement.blur();
          document.getSelection().removeAllRanges();
          window.scrollTo(0, 0);
        };
        const named = (one) => `${one.tagName} ${one.ariaLabel || one.innerText || one.id}`.slice(0, 60);
        // Whether `next` stands before `one`: above it, or left of it on the same line.
        const isBefore = (next, one) => {
          const [a, b] = [one.getBoundingClientRect(), next.getBoundingClientRect()];
          if (b.bottom <= a.top + 1) return true;
          return b.top < a.bottom && b.bottom > a.top && b.right <= a.left + 1;
        };
        // The children of the nearest common ancestor that hold the two.
        const branches = (one, next) => {
          const above = new Map();
          for (let node = one, child = one; node; child = node, node = node.parentElement) above.set(node, child);
          for (let node = next, child = next; node; child = node, node = node.parentElement) {
            if (above.has(node)) return [above.get(node), child];
          }
        };
        const checkRing = (one) => {
          const style = getComputedStyle(one);
          const width = parseFloat(style.outlineWidth);
          if (style.outlineStyle === "none" || width < 2) return faults.push(`no ring: ${named(one)}`);
          const box = one.getBoundingClientRect(), out = Math.max(0, parseFloat(style.outlineOffset) + width);
          for (let node = one.parentElement; node && node !== document.body; node = node.parentElement) {
            const outer = getComputedStyle(node);
            if (outer.overflowX === "visible" && outer.overflowY === "visible") continue;
            const limit = node.getBoundingClientRect();
            if (box.left - out < limit.left - 0.5 || box.right + out > limit.right + 0.5
                || box.top - out < limit.top - 0.5 || box.bottom + out > limit.bottom + 0.5) {
              faults.push(`ring is cut off by ${node.className}: ${named(one)}`);
            }
          }
        };
        window.step = () => {
          const one = document.activeElement;
          if (!one || one === document.body) return "end";
          // The controls inside the player.
          if (one === last) return "inside";
          if (seen.has(one)) return "end";
          seen.add(one);
          checkRing(one);
          if (last?.isConnected && !last.matches(".skip")) {
            const [from, to] = branches(last, one);
            if (from !== to && isBefore(to, from)) faults.push(`${named(one)} stands before ${named(last)}`);
          }
          last = one;
          return "next";
        };
        window.faults = () => faults;
        window.missed = () => [...document.querySelectorAll(
            "a[href], button, input, select, textarea, summary, video, [tabindex='0']")]
          .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled)
          .filter((one) => ![...seen].some((other) => other === one || named(other) === named(one)))
          .map(named);
        """

    /// Lists texts with less contrast than WCAG 2.2 asks (1.4.3: 4.5, large ones 3), and controls whose
    /// border has less than 3 (1.4.11).
    private static let contrast = """
        const parsed = (text) => {
          const numbers = text.match(/[\\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
          const scale = text.startsWith("color(") ? 255 : 1;
          return [numbers[0] * scale, numbers[1] * scale, numbers[2] * scale, numbers[3] ?? 1];
        };
        const over = ([r, g, b, a], under) => [r, g, b].map((value, index) => value * a + under[index] * (1 - a));
        const ground = (one) => {
          const layers = [];
          for (let node = one; node; node = node.parentElement) {
            const colour = parsed(getComputedStyle(node).backgroundColor);
            if (colour[3] > 0) layers.push(colour);
            if (colour[3] === 1) break;
          }
          return layers.reverse().reduce((under, colour) => over(colour, under), [255, 255, 255]);
        };
        const light = (colour) => colour.map((value) => value / 255)
          .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
          .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
        const ratio = (one, other) => {
          const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
          return (high + 0.05) / (low + 0.05);
        };
        const opacity = (one) => {
          let all = 1;
          for (let node = one; node; node = node.parentElement) all *= Number(getComputedStyle(node).opacity);
          return all;
        };
        const seen = (text, under, share) => over([text[0], text[1], text[2], text[3] * share], under);
        const isOff = (one) => one.closest(":disabled, [aria-disabled=true]");
        window.faint = () => {
          const found = new Set();
          const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            const one = node.parentElement;
            if (!node.data.trim() || !one.checkVisibility({ visibilityProperty: true }) || isOff(one)) continue;
            if (one.closest(".visually-hidden, .skip, option, video, script, .initial")) continue;
            const style = getComputedStyle(one), under = ground(one);
            const colour = parsed(one.ownerSVGElement ? style.fill : style.color);
            const size = parseFloat(style.fontSize);
            const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
            const is = ratio(seen(colour, under, opacity(one)), under);
            if (is < least) found.add(`${is.toFixed(2)} ${one.className.baseVal ?? one.className} “${node.data.trim().slice(0, 20)}”`);
          }
          for (const one of document.querySelectorAll("input, select, textarea, button:not(.quiet)")) {
            if (!one.checkVisibility() || isOff(one)) continue;
            const style = getComputedStyle(one), under = ground(one.parentElement);
            const is = Math.max(ratio(parsed(style.borderTopColor).slice(0, 3), under), ratio(ground(one), under));
            if (is < 3) found.add(`${is.toFixed(2)} border of ${one.id || one.innerText}`);
            const hint = getComputedStyle(one, "::placeholder");
            if (!one.placeholder) continue;
            const told = ratio(seen(parsed(hint.color), ground(one), Number(hint.opacity)), ground(one));
            if (told < 4.5) found.add(`${told.toFixed(2)} placeholder of ${one.id}`);
          }
          return [...found];
        };
        """
}
