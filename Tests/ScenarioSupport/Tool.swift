import FixtureCDN
import Glibc

/// Other programs that a scenario runs to their end, mainly ffmpeg.
package enum Tool {
    /// The result of a program; `status` is its exit code, or 128 plus the signal that ended it.
    package struct Result: Sendable {
        package let status: Int32
        package let output: [UInt8]
        package let errors: [UInt8]

        package var stdout: String { String(decoding: output, as: UTF8.self) }
        package var stderr: String { String(decoding: errors, as: UTF8.self) }
    }

    /// A program that was killed because it had exceeded its limit.
    package struct TookTooLong: Error, CustomStringConvertible {
        package let description: String
    }

    /// Runs a program and waits for it; one that exceeds `limit` is killed, and this throws
    /// `TookTooLong`.
    package static func run(_ arguments: [String], within limit: Duration = .seconds(60)) throws
        -> Result
    {
        let child = try ChildProcess(arguments)
        guard let exit = child.waitForExit(seconds: limit / .seconds(1)) else {
            child.kill(SIGKILL)
            _ = child.waitForExit()
            // With the command no more than `Fixtures/tools/test` prints of one issue.
            let text = String(decoding: child.standardError.suffix(1_000), as: UTF8.self)
            throw TookTooLong(
                description: "\(arguments.joined(separator: " ")) took over \(limit)\n\(text)")
        }
        let status =
            switch exit {
            case .code(let code): code
            case .signal(let signal): 128 + signal
            }
        return Result(status: status, output: child.standardOutput, errors: child.standardError)
    }

    /// The path of an executable of this package: beside the running tests, or where a build puts it.
    package static func built(_ name: String) throws -> String {
        let tests = realPath("/proc/self/exe") ?? ""
        let folder = tests.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 }
        let builds = Fixture.repository + "/.build"
        let places = [folder, builds + "/debug", builds + "/release"].map { $0 + "/" + name }
        guard let found = places.first(where: { access($0, X_OK) == 0 }) else {
            throw ScenarioFailure("\(name) is not built; looked for \(places)")
        }
        return found
    }

    /// Whether a program is in PATH.
    package static func exists(_ name: String) -> Bool { find(name) != nil }

    private static func find(_ name: String) -> String? {
        let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        return path.split(separator: ":").map { "\($0)/\(name)" }
            .first { access($0, X_OK) == 0 }
    }

    /// A C compiler: the one in PATH, else the one that comes with Swift; nil without either.
    package static let cCompiler: String? = {
        if let found = find("cc") ?? find("clang") { return found }
        guard let swift = find("swift").flatMap(realPath) else { return nil }
        let beside = swift.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 } + "/clang"
        return access(beside, X_OK) == 0 ? beside : nil
    }()

    /// The hash of every decoded frame of a stream as ffmpeg's framemd5 prints them; nil if it
    /// fails or reports broken data.
    ///
    /// Every audio and video stream is decoded; `arguments` precede the input.
    package static func framemd5(_ url: String, _ arguments: [String] = []) throws -> String? {
        let result = try run(
            ["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error"] + arguments
                + ["-i", url, "-map", "0:v?", "-map", "0:a?", "-f", "framemd5", "-"])
        // ffmpeg exits with 0 if it lost segments: only its message shows it.
        guard result.status == 0, result.errors.isEmpty else { return nil }
        return result.stdout.split(separator: "\n").filter { !$0.hasPrefix("#") }
            .joined(separator: "\n")
    }
}
