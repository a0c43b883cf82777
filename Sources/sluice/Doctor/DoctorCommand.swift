import ArgumentParser
import CommandSupport
import DaemonService
import Diagnosis
import Model
import Posix
import Routing
import URISyntax
import Upstream

/// `sluice doctor`: what is wrong with this machine, its settings, or a stream.
struct DoctorCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check this machine, the settings, and a stream directly and through Sluice.",
        discussion: """
            Takes the options of `sluice serve`. Each check says ok, warning or problem, and what to do. A URL is \
            requested directly and then through the daemon; if none runs, one is started with a temporary cache \
            folder. Makes at most 80 requests, reads at most 100 MB, and takes seconds, at most about two minutes. \
            Values of queries are not printed. Exit codes: 0 no problem, 2 a problem was found.
            """)

    @Argument(
        help:
            "The URL of a playlist or media file at its origin, or as played through the daemon; headers may follow as in Kodi, URL|Name=value&Name=value."
    )
    var url: String?

    @OptionGroup var headers: OriginHeaders

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var options: ServeOptions

    func validate() throws { _ = try given }

    private var given: GivenURL? {
        get throws { try url.map { try GivenURL($0, fields: headers.fields()) } }
    }

    func run() throws {
        let given = try given
        let report = Doctor(options, given).report
        print(json ? try report.json() : report.text)
        if report.hasProblem { throw ExitCodes.violations }
    }
}

/// All checks in their order; blocks.
struct Doctor {
    let report: DoctorReport
    /// Nil where a setting is wrong.
    let configuration: DaemonConfiguration?
    /// The daemon that runs; nil without one.
    let daemon: FoundDaemon?
    /// What listens at an address of the settings instead, or refuses to answer, and what to do;
    /// nil if a daemon was found, or nothing listens.
    let faultOfDaemon: String?
    let redaction: Redaction

    init(_ options: ServeOptions, _ given: GivenURL?) {
        Interruption.watch()
        var findings: [Finding] = []
        var found: DaemonConfiguration?
        do {
            let read = try options.load()
            let file = read.settingsFile.map { "with the file \($0)" } ?? "without a file"
            findings.append(.ok("configuration", file))
            if let fault = read.faultOfStart {
                findings.append(
                    .problem(
                        "access log", "a start by this user would fail: \(fault)",
                        "correct that, or run this as the user of the daemon"))
            }
            found = read
        } catch let error as ConfigurationError {
            findings += error.faults.map {
                .problem(
                    "configuration", $0, "correct it; `sluice config` shows the settings in force")
            }
        } catch {
            findings.append(
                .problem("configuration", "it cannot be read: \(error)", "look at its file"))
        }
        configuration = found
        let probe = found.map { DaemonProbe($0) }
        findings += MachineChecks(configuration: found, isAnswered: probe?.daemon != nil).findings
        findings += probe?.findings ?? []
        daemon = probe?.daemon
        faultOfDaemon = probe?.fault
        // What people have at hand is the URL that they play.
        let basePath = probe?.daemon?.basePath ?? found?.proxy.basePath ?? ""
        var origin: GivenURL?
        var tested = given
        do {
            origin = try given?.behindDaemon(basePath: basePath)
            tested = origin ?? given
        } catch {
            tested = nil
            findings.append(.problem("URL", "it is not tested: \(error)", "give the origin's URL"))
        }
        redaction = Redaction(
            secrets: Self.secrets(options, found, [given, origin].compactMap { $0 }))
        if let origin {
            let text = "it leads through a daemon; its origin's \(origin.url.redacted) is tested"
            findings.append(.ok("URL", text))
        }
        if let tested {
            findings += Self.try(tested, options, found, at: probe?.daemon)
        }
        report = DoctorReport(findings, redaction)
    }

    /// Secrets, which are removed wherever they occur in the report.
    private static func secrets(
        _ options: ServeOptions, _ configuration: DaemonConfiguration?, _ given: [GivenURL]
    ) -> [String] {
        var secrets = [configuration?.proxy.token, options.scalars["token"]].compactMap { $0 }
        secrets += DaemonOptions.environmentToken.map { [$0] } ?? []
        for given in given {
            secrets += given.url.secrets
            secrets += given.headers.map(\.value)
        }
        secrets += (configuration?.givenValues ?? []).flatMap(Redaction.secrets(in:))
        secrets += (configuration?.proxy.mounts ?? []).flatMap { $0.headers.map(\.value) }
        return secrets
    }

    // MARK: A stream

    private static func `try`(
        _ given: GivenURL, _ options: ServeOptions, _ configuration: DaemonConfiguration?,
        at daemon: FoundDaemon?
    ) -> [Finding] {
        let budget = TransferBudget(
            requests: 40, bytes: 50 << 20, seconds: 45, each: 8, from: .now())
        let upstream = configuration?.upstream ?? UpstreamConfiguration()
        if let refusal = upstream.onlyOrigins.current.refusal(of: given.url.origin) {
            return [
                .problem(
                    "origin", "\(refusal.message): the daemon answers 403",
                    "name it with --only-origin too, if it is to be fetched from")
            ]
        }
        var direct = StreamChecks(
            given.url,
            StreamClient(
                budget: budget, lines: given.lines, comesFromPage: true,
                way: { handle, url in
                    (try? AbsoluteURL(url)).map { CommandRoute(to: $0, on: handle, upstream) }
                }), route: upstream.routes.route(to: given.url.origin).summary)
        direct.run()
        guard let configuration else { return direct.findings }
        // Without a parent, the daemon has no other way to the origin.
        guard direct.reading != nil || !configuration.proxy.parents.isEmpty else {
            return direct.findings
        }
        do throws(TemporaryDaemon.Fault) {
            let own =
                daemon == nil
                ? try TemporaryDaemon(options.arguments, speaksTLS: configuration.secure != nil)
                : nil
            defer { own?.stop() }
            let front = FrontProxy(daemon ?? FoundDaemon(base: own?.base ?? ""))
            let entry = given.entry(at: front.base, token: configuration.proxy.token)
            guard let entry = try? AbsoluteURL(entry) else { return direct.findings }
            let budget = TransferBudget(
                requests: 40, bytes: 50 << 20, seconds: 45, each: 30, from: .now())
            var proxied = ProxyChecks(
                entry: entry,
                StreamClient(budget: budget, lines: [], comesFromPage: false, front: front),
                direct: direct)
            proxied.run()
            // The store and the options of a daemon that runs may give other results.
            let made: [Finding] =
                daemon == nil
                ? [
                    .ok(
                        "temporary daemon",
                        "no daemon could be asked; one with an empty cache is tested")
                ] : []
            return direct.findings + made + proxied.findings
        } catch {
            return direct.findings + [
                .problem(
                    "through Sluice", "no daemon could be started: \(error.text)",
                    "correct that, or start the daemon with `sluice serve`")
            ]
        }
    }
}
