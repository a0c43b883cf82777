// The daemon's settings, checked and typed.
import CommandSupport
import CachePolicy
import FoundationEssentials
import Glibc
package import HTTPServer
import Lookahead
package import Logging
package import Posix
import Library
package import Model
package import Serving
import Routing
import SharedStore
package import Store
package import Upstream
import TLS
import URISyntax

/// All settings of `serve`.
package struct DaemonConfiguration: Sendable {
    package var addresses: [SocketAddress] = []
    /// Inherited listening sockets without TLS; if there are any, `addresses` is empty.
    package var inherited: [InheritedListener] = []
    /// Addresses and certificates for TLS; nil for none.
    package var secure: SecureListening?
    /// Whether connections on both sides may use several network paths.
    package var multipath = MultipathUse.auto
    package var cacheFolder = ""
    package var store = StoreConfiguration(budgetBytes: 10_000_000_000, minFreeBytes: 512_000_000)
    /// The time after which what nobody has used is removed; nil for never.
    var maxUnused: Interval?
    package var proxy = ProxySettings()
    /// True if ffmpeg makes pictures of titles for the console.
    package var makesPictures = false
    /// True if TLS sessions with origins survive restarts.
    package var keepsTLSTickets = false
    package var upstream = UpstreamConfiguration()
    var downloads = DownloadRules()
    var limits = ServerLimits()
    /// True if `max-connections` was given.
    var namesConnections = false
    var loops = 1
    var drain = Interval.seconds(10 as Int64)
    /// How long players are still accepted after the first signal.
    var drainDelay = Interval.zero
    package var logLevel = Logger.Level.notice
    package private(set) var logFormat = LogFormat.text
    /// The settings that need a restart to change, as they were given, by name.
    private(set) var fixedSettings: [String: String] = [:]
    /// The values of all settings that were given, with their secrets.
    package private(set) var givenValues: [String] = []
    /// All settings with their values in force and the sources of these, ordered by name.
    package private(set) var settings: [Setting] = []
    /// The configuration file; nil without one.
    package private(set) var settingsFile: String?
    /// What another start with these settings would fail by, and the running daemon does not need;
    /// nil for nothing.
    package private(set) var faultOfStart: String?
    /// Values of settings that only former versions had, by name.
    private(set) var formerSettings: [String: String] = [:]
    /// The settings of routes to origins, one a line, without secrets.
    package private(set) var routeSummaries: [String] = []
    /// Hosts that the configuration allows private addresses by name.
    private var privateHosts: [String] = []
    /// The limits of single hosts, each as `HOST=N`.
    private var originLimits: [String] = []

    /// True when the daemon can be reached from other machines.
    package var isShared: Bool { !listeningPlaces.allSatisfy(\.isLoopback) }

    /// What the daemon needs descriptors for.
    package var descriptorDemand: DescriptorBudget.Demand {
        let upstream = upstream.normalised
        return DescriptorBudget.Demand(
            loops: loops, addresses: listeningPlaces.count,
            transfers: upstream.slots + upstream.extraSlots + upstream.expressCap,
            connections: limits.connections, openObjects: store.maxOpenObjects)
    }

    /// Merges and checks all settings; throws `ConfigurationError` with every fault.
    ///
    /// - Parameters:
    ///   - scalars: the settings given as flags, by name.
    ///   - lists: those that may be given several times.
    ///   - file: the path of the configuration file, if a flag gives it.
    ///   - handed: sockets inherited from a service manager; they replace `bind`, `port` and
    ///     `tls-port`. Nil for a command that only reads the settings of a daemon, which may have
    ///     such sockets.
    ///   - isReread: true for settings that a running daemon reads again, or may have.
    /// - Throws: `ConfigurationError`.
    package init(
        scalars: [String: String], lists: [String: [String]], file: String?,
        handed: [InheritedListener]? = nil, isReread: Bool = false
    ) async throws {
        var reader = try await SettingsReader(scalars: scalars, lists: lists, file: file)
        readAddresses(&reader, handed ?? [], mayBeHanded: handed == nil)
        readStore(&reader)
        readProxy(&reader)
        readUpstream(&reader)
        readDownloads(&reader)
        readLimits(&reader)
        logLevel = reader.choice(
            "log-level", default: logLevel, ignoresCase: true,
            else: "log-level is trace, debug, info, notice, warning, error or critical")
        logFormat = reader.choice(
            "log-format", default: logFormat, ignoresCase: true, else: "log-format is text or json")
        proxy.accessLog = reader.text("access-log")
        if let fault = proxy.accessLog.flatMap(Self.fault(ofLog:)) {
            // A running daemon has its log open, and must not miss a new certificate for this.
            if isReread { faultOfStart = fault } else { reader.fault(fault) }
        }
        proxy.consolePlayer = reader.text("console-player")
        if proxy.consolePlayer?.isEmpty == true { reader.fault("console-player is a path") }
        switch reader.text("title-pictures", default: "off") {
        case "off": makesPictures = false
        case "on": makesPictures = true
        case let text: reader.fault("title-pictures is off or on, not '\(text)'")
        }
        guard reader.faults.isEmpty else { throw ConfigurationError(faults: reader.faults) }
        givenValues = ServeOptions.names.filter { $0 != "origins" }.flatMap(reader.givenValues)
        settings = reader.report
        settingsFile = reader.file
        for name in ServeOptions.names.subtracting(ServeOptions.reloadedNames) {
            let isList = ServeOptions.listNames.contains(name)
            fixedSettings[name] = isList ? "\(reader.list(name))" : reader.text(name)
        }
        // These two may also be set in `origins`, of which a reload applies the rest.
        fixedSettings["origin-limit"] = "\(originLimits)"
        fixedSettings["allow-private"] = "\(reader.text("allow-private") ?? "") \(privateHosts)"
    }

    private mutating func readStore(_ reader: inout SettingsReader) {
        cacheFolder = reader.text("cache-dir", default: Self.defaultCacheFolder)
        if cacheFolder.isEmpty { reader.fault("cache-dir is empty") }
        if cacheFolder == "~" || cacheFolder.hasPrefix("~/") {
            reader.fault(
                "cache-dir begins with ~, which only a shell replaces; give the whole path")
        }
        let most: Int64 = 1_000_000_000_000_000
        store.budgetBytes = reader.bytes(
            "cache-size", in: 1_000_000...most, default: store.budgetBytes)
        store.minFreeBytes = reader.bytes("min-free", in: 0...most, default: store.minFreeBytes)
        let unused = reader.text("max-unused", default: "off")
        if unused != "off" {
            maxUnused = AdministrationQuery.duration(unused)
            if maxUnused.map({ $0 >= .seconds(3_600 as Int64) }) != true {
                reader.fault(
                    "max-unused is off or a time of at least 1h such as 12h, 30d or 8w, not '\(unused)'"
                )
            }
        }
        proxy.readAhead = reader.bytes("read-ahead", in: 1_000_000...most, default: proxy.readAhead)
        for name in ServeOptions.formerNames {
            if let text = reader.text(name) { formerSettings[name] = text }
        }
    }

    private static var defaultCacheFolder: String {
        let environment = ProcessInfo.processInfo.environment
        if let cache = environment["XDG_CACHE_HOME"], cache.hasPrefix("/") {
            return cache + "/sluice"
        }
        if let home = environment["HOME"], home.hasPrefix("/") { return home + "/.cache/sluice" }
        return "/var/cache/sluice"
    }

    /// Returns why the access log cannot be written; nil if nothing is known against it.
    private static func fault(ofLog path: String) -> String? {
        if path.isEmpty { return "access-log is a path or -" }
        if path == "-" { return nil }
        var found = stat()
        if stat(path, &found) == 0, found.st_mode & S_IFMT == S_IFDIR {
            return "access-log \(path) is a folder; name a file in it, such as access.log"
        }
        let place = access(path, F_OK) == 0 ? path : parentFolder(of: path)
        guard access(place, W_OK) != 0 else { return nil }
        let error = SystemError("access", code: errno, subject: path)
        return "access-log \(path) cannot be written: \(error); make its folder, or name another"
    }

    private mutating func readProxy(_ reader: inout SettingsReader) {
        proxy.policy = reader.choice(
            "policy", default: proxy.policy, else: "policy is media, rfc, offline or refresh")
        readOrigins(&reader)
        readMounts(&reader)
        proxy.hostNames = reader.hosts("host-name", read: GivenHost.field)
        if let token = reader.text("token") {
            if (8...200).contains(token.count) {
                proxy.token = token
            } else {
                reader.fault("token has 8...200 characters")
            }
        }
        if let path = reader.text("cluster-key") {
            do throws(ClusterKeyFile.Fault) {
                proxy.clusterKeys = try ClusterKeyFile(path: path).keys
            } catch {
                reader.fault("\(error)")
            }
            if !SessionSealer.isAvailable {
                reader.fault(
                    "cluster-key needs AES-256-SIV, which this libcrypto does not offer; see openssl list -cipher-algorithms"
                )
            }
        }
        for text in reader.list("cors-origin") {
            if let origin = GivenHost.webOrigin(text) {
                proxy.credentialedOrigins.insert(origin)
            } else {
                reader.fault("cors-origin is scheme://host[:port], not '\(text)'")
            }
        }
        readLinks(&reader)
    }

    private mutating func readMounts(_ reader: inout SettingsReader) {
        let mounts = reader.list("mount")
        for text in mounts {
            do throws(Mount.Fault) {
                proxy.mounts.append(try Mount(text))
            } catch {
                reader.fault("\(error)")
            }
        }
        for text in reader.list("mount-header") {
            do throws(MountHeader.Fault) {
                let given = try MountHeader(text)
                guard let index = proxy.mounts.firstIndex(where: { $0.path == given.path }) else {
                    // It may be the path of a mount that was refused, which has its own error.
                    guard proxy.mounts.count == mounts.count else { continue }
                    throw MountHeader.Fault.noMount(path: given.path)
                }
                try proxy.mounts[index].add(given.header)
            } catch {
                reader.fault("\(error)")
            }
        }
        proxy.mountKind = reader.choice(
            "mount-cache", default: proxy.mountKind,
            else: "mount-cache is gateway, shared or private")
        let paths = proxy.mounts.map(\.path)
        if Set(paths).count != paths.count { reader.fault("two mounts have the same path") }
    }

    private mutating func readOrigins(_ reader: inout SettingsReader) {
        proxy.keys.mode = reader.choice(
            "keys", default: proxy.keys.mode, else: "keys are off, standard or auto")
        var origins = OriginsReader()
        for option in OriginsReader.Option.allCases {
            origins.read(option, reader.list(option.rawValue))
        }
        origins.read(reader.origins)
        for fault in origins.faults { reader.fault(fault) }
        proxy.keys.origins = origins.origins
        privateHosts = origins.privateHosts
        let limits = origins.limits
        if !limits.isEmpty { proxy.hostLimits = HostLimits { limits.limit(of: $0) } }
        originLimits = limits.all.compactMap { origin in
            origin.limit.map { "\(origin.pattern)=\($0)" }
        }
    }

    private mutating func readUpstream(_ reader: inout SettingsReader) {
        upstream.slots = reader.number("slots", in: 1...256, default: upstream.slots)
        upstream.expressCap = reader.number(
            "express-slots", in: 1...64, default: upstream.expressCap)
        upstream.perHostLimit = reader.number(
            "host-limit", in: 0...256, default: upstream.perHostLimit)
        upstream.slotWait = reader.seconds(
            "slot-timeout", in: 1...3600, default: upstream.slotWait)
        let plan = reader.text("concurrency", default: "probe")
        if let plan = ConcurrencyPlan(plan) {
            proxy.concurrency = plan
        } else {
            reader.fault("concurrency is fixed:1 to fixed:32, table or probe, not '\(plan)'")
        }
        proxy.hostLimit = upstream.perHostLimit
        upstream.hostLimits = proxy.hostLimits
        readAhead(&reader)
        readPace(&reader)
        readLiveWindow(&reader)
        upstream.addressPolicy = AddressPolicy(
            allowsPrivate: reader.isOn("allow-private"),
            allowedHosts: reader.hosts("allow-host") { GivenHost.ascii($0) }.union(privateHosts))
        proxy.allowsPrivate = upstream.addressPolicy.allowsPrivate
        proxy.privateHosts = upstream.addressPolicy.allowedHosts
        upstream.userAgent = "sluice/\(sluiceVersion)"
        proxy.timeouts.connect = reader.seconds(
            "connect-timeout", in: 1...300, default: proxy.timeouts.connect)
        proxy.timeouts.firstByte = reader.seconds(
            "first-byte-timeout", in: 1...300, default: proxy.timeouts.firstByte)
        proxy.timeouts.stall = reader.seconds(
            "stall-timeout", in: 1...300, default: proxy.timeouts.stall)
        if let file = reader.text("ca-file") {
            do throws(InputFile.Fault) {
                try InputFile.check(file, atMost: 16 << 20)
                upstream.caFile = file
            } catch {
                reader.fault("the ca-file cannot be used: \(error)")
            }
        }
        readConnections(&reader)
        readParents(&reader)
        readSharedStore(&reader)
        var routes = RoutesReader()
        routes.read(reader)
        upstream.onlyOrigins.replace(
            with: routes.readOnlyOrigins(reader.list("only-origin"), and: serversNamed))
        for fault in routes.faults { reader.fault(fault) }
        upstream.routes = routes.routes
        routeSummaries = routes.summary
        // For pages of other sites these are private hosts like all others.
        proxy.privateHosts.formUnion(routes.privateHosts)
        proxy.certificateHosts = routes.certificateHosts
    }

    /// The hosts of mounts, parents and the shared store, as in `Origin.host`.
    private var serversNamed: Set<String> {
        Set(proxy.mounts.map(\.origin.origin.host) + proxy.parents.all.map(\.origin.host))
            .union([proxy.sharedStore?.location.host].compactMap { $0 })
    }

    private mutating func readLimits(_ reader: inout SettingsReader) {
        let cores = ProcessInfo.processInfo.activeProcessorCount
        loops = reader.number("loops", in: 1...64, default: max(1, min(4, cores)))
        namesConnections = reader.text("max-connections") != nil
        limits.connections = reader.number(
            "max-connections", in: 1...1_000_000, default: limits.connections)
        limits.headTimeout = reader.seconds(
            "head-timeout", in: 1...300, default: limits.headTimeout)
        limits.idleTimeout = reader.seconds(
            "idle-timeout", in: 1...3_600, default: limits.idleTimeout)
        limits.writeTimeout = reader.seconds(
            "write-timeout", in: 1...3_600, default: limits.writeTimeout)
        drain = reader.seconds("drain-timeout", in: 0...3_600, default: drain)
        drainDelay = reader.seconds("drain-delay", in: 0...3_600, default: drainDelay)
    }
}
