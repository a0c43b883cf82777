// Chromium driven through chromedriver: opens pages, runs scripts, takes pictures.
import FixtureCDN
import Glibc
import ScenarioSupport
import Synchronization

/// One window without a screen (W3C WebDriver); ends with this value.
final class Browser {
    private let driver: ChildProcess
    private let player: ScriptedPlayer
    private let session: String

    private static let count = Mutex(0)

    /// Returns a port that the kernel gives to no connection, and no other runner uses now.
    ///
    /// With port 0 chromedriver takes any for IPv6 and then the same one for IPv4, which may be in
    /// use.
    private static func nextPort() -> Int {
        let number = count.withLock { count in
            count += 1
            return count
        }
        return 20_000 + (Int(getpid()) * 64 + number) % 10_000
    }

    /// Starts one.
    ///
    /// - Parameters:
    ///   - size: of the window, in CSS pixels.
    ///   - isDark: what the page finds as the preferred colour scheme.
    /// - Throws: what chromedriver says where there is no browser.
    init(size: (width: Int, height: Int) = (1_280, 900), isDark: Bool = false) throws {
        let driver = try ChildProcess(["chromedriver", "--port=\(Self.nextPort())"])
        self.driver = driver
        var port: Substring?
        // Programs of this size are read from the disk if nothing ran them for a while.
        _ = eventually(within: .seconds(60)) {
            let text = String(decoding: driver.standardOutput, as: UTF8.self)
            port = text.firstRange(of: "successfully on port ").map { range in
                text[range.upperBound...].prefix { $0.isNumber }
            }
            return port != nil || driver.exit != nil
        }
        guard let port else {
            let said = driver.standardOutput + driver.standardError
            throw ScenarioFailure(
                "chromedriver does not start: \(driver.exit.map { "\($0)" } ?? "it runs"), "
                    + String(decoding: said.suffix(600), as: UTF8.self))
        }
        player = ScriptedPlayer("http://127.0.0.1:\(port)")
        let arguments = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--autoplay-policy=no-user-gesture-required",
            "--window-size=\(size.width),\(size.height)",
        ].map { "\"\($0)\"" }
        let options = "{\"goog:chromeOptions\":{\"args\":[\(arguments.joined(separator: ","))]}}"
        let made = try player.get(
            "/session", method: "POST",
            body: Array("{\"capabilities\":{\"alwaysMatch\":\(options)}}".utf8))
        guard let start = made.text.firstRange(of: "\"sessionId\":\"")?.upperBound else {
            throw ScenarioFailure("no browser: \(made.text.prefix(400))")
        }
        session = "/session/" + made.text[start...].prefix { $0 != "\"" }
        let scheme = isDark ? "dark" : "light"
        try command(
            "Emulation.setEmulatedMedia",
            "{\"features\":[{\"name\":\"prefers-color-scheme\",\"value\":\"\(scheme)\"}]}")
        // Windows cannot be narrower than 500 pixels; telephones are.
        if size.width < 500 {
            try command(
                "Emulation.setDeviceMetricsOverride",
                "{\"width\":\(size.width),\"height\":\(size.height),\"deviceScaleFactor\":2,\"mobile\":true}"
            )
        }
    }

    deinit {
        _ = try? player.get(session, method: "DELETE")
        driver.end()
    }

    /// A command of the DevTools protocol.
    @discardableResult
    func command(_ name: String, _ parameters: String) throws -> String {
        try post("/goog/cdp/execute", "{\"cmd\":\"\(name)\",\"params\":\(parameters)}")
    }

    @discardableResult
    private func post(_ path: String, _ body: String) throws -> String {
        let answer = try player.get(session + path, method: "POST", body: Array(body.utf8))
        guard answer.status == 200 else {
            throw ScenarioFailure("\(path): \(answer.text.prefix(600))")
        }
        return answer.text
    }

    /// Opens a page and waits until it is loaded.
    func open(_ url: String) throws { try post("/url", "{\"url\":\(Self.quoted(url))}") }

    /// The value of an expression in the page, as text.
    func value(_ expression: String) throws -> String {
        // Percent-encoded, so that the answer needs no parser.
        let script = "return encodeURIComponent(String(\(expression)))"
        let text = try post("/execute/sync", "{\"script\":\(Self.quoted(script)),\"args\":[]}")
        guard let start = text.firstRange(of: "\"value\":\"")?.upperBound else {
            throw ScenarioFailure("no value: \(text.prefix(400))")
        }
        return Self.decoded(text[start...].prefix { $0 != "\"" })
    }

    /// Runs statements in the page.
    func run(_ script: String) throws {
        try post("/execute/sync", "{\"script\":\(Self.quoted(script)),\"args\":[]}")
    }

    /// Waits until an expression is true in the page; false at the deadline.
    func comes(_ expression: String, within limit: Duration = .seconds(40)) throws -> Bool {
        try eventually(within: limit, pausing: .milliseconds(50)) {
            try value("Boolean(\(expression))") == "true"
        }
    }

    /// Takes a picture of the whole page into the folder that CONSOLE_SCREENSHOTS names, if it names one.
    func picture(_ name: String) throws {
        guard let folder = getenv("CONSOLE_SCREENSHOTS").map({ String(cString: $0) }) else {
            return
        }
        let text = try command("Page.captureScreenshot", "{\"captureBeyondViewport\":true}")
        guard let start = text.firstRange(of: "\"data\":\"")?.upperBound else { return }
        try writeFile(
            "\(folder)/\(name).png", Self.bytes(ofBase64: text[start...].prefix { $0 != "\"" }))
    }

    /// Presses and releases a key as a person does: `Tab`, `Enter`, `Escape`.
    func press(_ key: String) throws {
        let codes = ["Tab": 9, "Enter": 13, "Escape": 27]
        guard let code = codes[key] else { throw ScenarioFailure("no such key: \(key)") }
        let text = key == "Enter" ? ",\"text\":\"\\r\"" : ""
        for type in ["keyDown", "keyUp"] {
            try command(
                "Input.dispatchKeyEvent",
                "{\"type\":\"\(type)\",\"key\":\"\(key)\",\"code\":\"\(key)\","
                    + "\"windowsVirtualKeyCode\":\(code)\(type == "keyDown" ? text : "")}")
        }
    }

    /// What a screen reader is told of an element.
    struct AccessibleNode: Equatable {
        let role: String
        let name: String
        let isFocusable: Bool
    }

    /// What a screen reader is told of the page, in its order.
    func accessibilityTree() throws -> [AccessibleNode] {
        let text = try command("Accessibility.getFullAXTree", "{}")
        // A name lists its sources before its value; members are in alphabetical order.
        func value(_ member: String, before next: String, of node: Substring) -> String {
            guard let start = node.firstRange(of: "\"\(member)\":{")?.upperBound else { return "" }
            let end = node[start...].firstRange(of: "\"\(next)\":")?.lowerBound ?? node.endIndex
            var (found, rest) = ("", node[start..<end])
            while let range = rest.firstRange(of: "\"value\":\"") {
                rest = rest[range.upperBound...]
                found = String(rest.prefix { $0 != "\"" })
            }
            return found
        }
        return text.split(separator: "{\"backendDOMNodeId\"").dropFirst()
            .filter { $0.contains("\"ignored\":false") }
            .map { node in
                AccessibleNode(
                    role: value("role", before: "sources", of: node),
                    name: value("name", before: "nodeId", of: node),
                    isFocusable: node.contains("\"name\":\"focusable\""))
            }
    }

    private static func bytes(ofBase64 text: Substring) -> [UInt8] {
        var bytes: [UInt8] = [], held: UInt32 = 0, bits = 0
        for byte in text.utf8 {
            let six: UInt8
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): six = byte - 65
            case UInt8(ascii: "a")...UInt8(ascii: "z"): six = byte - 71
            case UInt8(ascii: "0")...UInt8(ascii: "9"): six = byte + 4
            case UInt8(ascii: "+"): six = 62
            case UInt8(ascii: "/"): six = 63
            default: continue
            }
            held = held << 6 | UInt32(six)
            bits += 6
            if bits >= 8 {
                bits -= 8
                bytes.append(UInt8(truncatingIfNeeded: held >> UInt32(bits)))
            }
        }
        return bytes
    }

    private static func decoded(_ text: Substring) -> String {
        var bytes: [UInt8] = [], rest = text.utf8[...]
        while let byte = rest.popFirst() {
            if byte == 0x25,
                let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            {
                bytes.append(code)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// A string of JSON, and of JavaScript.
    static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
