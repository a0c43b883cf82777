// swift-tools-version: 6.2
import PackageDescription

// The layers of the daemon, lowest first: a target imports only targets above it in this file.
// `make build` passes --explicit-target-dependency-import-check error, so that an import which is
// not declared here does not compile; `make layers` prints the rows that result.

/// Settings of every Swift target.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
    // The index that finds the tests would list each C header again for each compiler: a fifth of the
    // time that tests take to compile.
    .unsafeFlags(
        ["-Xfrontend", "-index-ignore-clang-modules", "-index-ignore-system-modules"],
        .when(configuration: .debug)),
]

/// Settings of what tests make and compare content with: optimised in debug builds too, since the
/// stories move gigabytes through it.
let optimised = strict + [.unsafeFlags(["-O"], .when(configuration: .debug))]

/// Settings of the pure targets: no unsafe construct compiles in them.
let pure: [SwiftSetting] =
    strict + [.strictMemorySafety(), .treatWarning("StrictMemorySafety", as: .error)]

let package = Package(
    name: "sluice",
    products: [
        .executable(name: "sluice", targets: ["sluice"]),
        .executable(name: "sluice-lab", targets: ["sluice-lab"]),
        .executable(name: "sample-cdn", targets: ["sample-cdn"]),
    ],
    dependencies: [
        // Command line, help texts and shell completion.
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        // Settings from flags, environment, file and defaults, in that order.
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0"),
        // The path type that swift-configuration takes.
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        // Leveled logs with metadata.
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        // Queues and heaps of the admission and timer code.
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        // The index of stored objects and the state besides them: SQLite in WAL mode with migrations.
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        // Latency histograms with bounded memory.
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    ],
    targets: [
        // C headers and shims; numbers from outside; host names and URI syntax.
        .target(name: "CLinux"),
        .systemLibrary(
            name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        // HTTP/2 framing, flow control and HPACK: the library that curl and Apache use.
        .systemLibrary(
            name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .target(name: "Numbers", swiftSettings: pure),
        // International host names and public suffixes: tables that change with Unicode and with
        // registries, from libraries that libcurl loads anyway.
        .systemLibrary(name: "CIDN2", pkgConfig: "libidn2", providers: [.apt(["libidn2-dev"])]),
        .systemLibrary(name: "CPSL", pkgConfig: "libpsl", providers: [.apt(["libpsl-dev"])]),
        .target(name: "HostNames", dependencies: ["CIDN2", "CPSL"], swiftSettings: strict),
        .target(name: "URISyntax", dependencies: ["Numbers", "HostNames"], swiftSettings: pure),

        // Pure protocols, bytes in and values out; owned descriptors and typed system errors.
        .target(name: "HTTP", dependencies: ["Numbers", "URISyntax"], swiftSettings: pure),
        .target(name: "HLS", dependencies: ["Numbers", "URISyntax"], swiftSettings: pure),
        .target(name: "Posix", dependencies: ["Numbers", "CLinux"], swiftSettings: strict),

        // The event loop; request paths and their meaning; pure decisions.
        .target(
            name: "Reactor",
            dependencies: [
                "Posix", "CLinux", .product(name: "HeapModule", package: "swift-collections"),
            ],
            swiftSettings: strict),
        .target(
            name: "Routing", dependencies: ["Numbers", "HTTP", "HLS", "URISyntax"],
            swiftSettings: pure),
        .target(
            name: "CachePolicy",
            dependencies: ["Numbers", "Posix", "HTTP", "HLS", "URISyntax"],
            swiftSettings: pure),
        // A certificate authority for the daemon's own TLS listener, made by commands.
        .target(
            name: "LocalAuthority", dependencies: ["HostNames", "Posix", "COpenSSL"],
            swiftSettings: strict),
        .target(name: "Retention", dependencies: ["Numbers"], swiftSettings: pure),
        // What is kept in an object store for several daemons: its form, its rules, S3's texts.
        .target(
            name: "SharedStore",
            dependencies: ["Numbers", "URISyntax", "HTTP", "Posix", "CachePolicy"],
            swiftSettings: pure),
        .target(
            name: "Lookahead", dependencies: ["Numbers", "HLS", "URISyntax"], swiftSettings: pure),

        // Bodies without an end: what they are, where viewers enter them, how much of them is kept.
        .target(
            name: "Endless", dependencies: ["Numbers", "Posix", "HTTP"], swiftSettings: pure),

        // The lines of the access log, for those who write and read them.
        .target(name: "AccessLogFormat", dependencies: ["Numbers"], swiftSettings: pure),

        // Shared code of the commands of both programs.
        .target(
            name: "CommandSupport",
            dependencies: [
                "Posix", "CCurl",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),
        // What the state of a machine and the responses of an origin mean for players, and text without
        // secrets; for `sluice doctor` and `sluice report`.
        .target(
            name: "Diagnosis", dependencies: ["Numbers", "URISyntax", "HTTP", "HLS"],
            swiftSettings: pure),
        // Policies that lost against the daemon's, and traces to compare them.
        .target(
            name: "RetentionLab", dependencies: ["AccessLogFormat", "Numbers", "Retention"],
            swiftSettings: pure),

        // Durable state other than objects.
        .target(
            name: "DurableState",
            dependencies: [
                "Numbers", "Posix", "Reactor",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),

        // Sockets, disk, libcurl.
        .target(name: "TLS", dependencies: ["COpenSSL", "Posix"], swiftSettings: strict),
        .target(
            name: "HTTPServer",
            dependencies: ["Numbers", "HTTP", "Posix", "Reactor", "URISyntax", "TLS", "CNGHTTP2"],
            swiftSettings: strict),
        .target(
            name: "Store",
            dependencies: [
                "Numbers", "Posix", "Reactor", "Retention", "DurableState", "COpenSSL",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .target(
            name: "Upstream",
            dependencies: [
                "Numbers", "URISyntax", "HTTP", "Posix", "Reactor", "CCurl", "COpenSSL",
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: strict),

        // The operations of an object store, as transfers.
        .target(
            name: "BucketClient",
            dependencies: ["URISyntax", "HTTP", "Posix", "Reactor", "SharedStore", "Upstream"],
            swiftSettings: strict),

        // Resources and their keys, sessions, live lists, facts of stored responses, counters.
        .target(
            name: "Model",
            dependencies: [
                "Numbers", "HostNames", "URISyntax", "HTTP", "HLS", "Posix", "Reactor", "Routing",
                "CachePolicy", "Retention", "Lookahead", "Endless", "DurableState", "Store",
                "Upstream", "SharedStore", "COpenSSL", "CZlib",
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "Histogram", package: "hdrhistogram-swift"),
            ],
            swiftSettings: strict),

        // Titles and their administration; orders for downloads, feeds and recordings.
        .target(
            name: "Library",
            dependencies: [
                "Numbers", "URISyntax", "HTTP", "HLS", "Posix", "Reactor", "Routing",
                "CachePolicy", "Retention", "Lookahead", "DurableState", "Store", "Model",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),

        // Transfers from origins, which many readers share.
        .target(
            name: "Origin",
            dependencies: [
                "Numbers", "URISyntax", "HTTP", "HLS", "Posix", "Reactor", "Routing",
                "CachePolicy", "Retention", "Lookahead", "Endless", "DurableState", "Store",
                "Upstream", "Model", "SharedStore", "BucketClient",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),

        // The page for browsers: its files, the events that it shows, its sessions. The C target
        // contains the files, byte by byte.
        .target(name: "ConsoleAssets", exclude: ["page"]),
        .target(
            name: "Console",
            dependencies: [
                "Numbers", "HTTP", "HTTPServer", "Posix", "Reactor", "Model", "ConsoleAssets",
            ],
            swiftSettings: strict),

        // Playlists as the daemon itself reads them: fresh ones, offline forms, and the search for
        // resources whose URL has expired.
        .target(
            name: "Playlists",
            dependencies: [
                "URISyntax", "HTTP", "HLS", "Posix", "Reactor", "Routing", "CachePolicy",
                "Store", "Upstream", "Model", "Origin",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),

        // Live playlists with a longer window than the origin's, and recordings.
        .target(
            name: "TimeShifting",
            dependencies: [
                "Numbers", "URISyntax", "HTTP", "HLS", "Posix", "Reactor", "Routing",
                "CachePolicy", "Retention", "DurableState", "Store", "Upstream", "Model",
                "Library", "Origin", "Playlists", "SharedStore",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),

        // What is fetched before players request it: look-ahead, feeds and downloads.
        .target(
            name: "Ahead",
            dependencies: [
                "Numbers", "URISyntax", "HTTP", "HLS", "Posix", "Reactor", "Routing",
                "CachePolicy", "Lookahead", "HTTPServer", "DurableState", "Store", "Upstream",
                "Model", "Library", "Origin", "Playlists", "SharedStore",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),

        // From a request to its response: links, policies, stored responses, rewritten playlists,
        // and the daemon's own pages.
        .target(
            name: "Serving",
            dependencies: [
                "AccessLogFormat", "Numbers", "HostNames", "URISyntax", "HTTP", "HLS", "Posix",
                "Reactor", "Routing", "CachePolicy", "Lookahead", "Endless", "HTTPServer", "Store",
                "Upstream", "Model", "Library", "Origin", "Playlists", "TimeShifting", "Ahead",
                "Console", "SharedStore", "CZlib",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),

        // The daemon: its settings, its parts wired together, its signals.
        .target(
            name: "DaemonService",
            dependencies: [
                "Numbers", "URISyntax", "Posix", "Reactor", "Routing", "CachePolicy", "Lookahead",
                "Endless", "HTTPServer",
                "TLS",
                "Store", "Upstream", "Model", "Library", "Ahead", "Console", "Serving",
                "SharedStore",
                "CommandSupport", "CCurl", "COpenSSL", "CNGHTTP2",
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            swiftSettings: strict),

        // The shipped program. The C target omits data that Foundation brings.
        .target(name: "CICUData"),
        .executableTarget(
            name: "sluice",
            dependencies: [
                "CICUData",
                "Numbers", "URISyntax", "HTTP", "HLS", "Posix", "Reactor", "Routing",
                "CachePolicy", "Lookahead", "Store", "Upstream", "Model", "Library",
                "Origin", "Ahead", "Serving", "DaemonService", "CommandSupport", "LocalAuthority",
                "CCurl", "COpenSSL", "Diagnosis",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),

        // The whole daemon in a simulated world, in which a seed determines every failure. The C
        // target replaces the C library's threads, clocks, sockets and files.
        .target(name: "CSimulation"),
        .executableTarget(
            name: "sluice-simulate",
            dependencies: [
                "Numbers", "URISyntax", "HTTP", "Posix", "DaemonService", "CSimulation", "CNGHTTP2",
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),

        // Shaped links, simulated players and traces, for tuning the daemon.
        .executableTarget(
            name: "sluice-lab",
            dependencies: [
                "CommandSupport", "Numbers", "URISyntax", "HTTP", "HLS", "Posix", "Reactor",
                "Retention", "RetentionLab", "Lookahead", "CCurl",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),

        // The figures behind the claims; `make bench`.
        .executableTarget(
            name: "Bench",
            dependencies: [
                "URISyntax", "HTTP", "HLS", "Posix", "Routing", "CLinux",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),

        // How the work of parsers and writers grows with their input; `make cost`.
        .executableTarget(
            name: "Cost",
            dependencies: [
                "URISyntax", "HTTP", "HLS", "Routing", "CachePolicy", "Model", "Library",
                "Serving",
            ],
            swiftSettings: strict),

        // The sample CDN: an origin with its own HTTP code, so that a fault in ours cannot hide.
        .target(name: "FixtureCDN", dependencies: ["CLinux"], swiftSettings: optimised),
        .executableTarget(name: "sample-cdn", dependencies: ["FixtureCDN"], swiftSettings: strict),

        // Tests: one target a library, and stories told through the daemon.
        .target(
            name: "ScenarioSupport",
            dependencies: ["AccessLogFormat", "CLinux", "FixtureCDN", "FuzzSupport"],
            path: "Tests/ScenarioSupport", swiftSettings: optimised),
        .testTarget(
            name: "EndlessTests", dependencies: ["Endless", "HTTP", "Posix"],
            swiftSettings: strict),
        .testTarget(name: "NumbersTests", dependencies: ["Numbers"], swiftSettings: strict),
        .testTarget(name: "HostNamesTests", dependencies: ["HostNames"], swiftSettings: strict),
        .testTarget(name: "URISyntaxTests", dependencies: ["URISyntax"], swiftSettings: strict),
        .testTarget(
            name: "HTTPTests", dependencies: ["FuzzSupport", "HTTP"], swiftSettings: strict),
        .testTarget(
            name: "HLSTests", dependencies: ["FuzzSupport", "HLS", "URISyntax"],
            swiftSettings: strict),
        .testTarget(name: "PosixTests", dependencies: ["Posix"], swiftSettings: strict),
        .testTarget(
            name: "ReactorTests", dependencies: ["Reactor", "Posix"], swiftSettings: strict),
        .testTarget(
            name: "HTTPServerTests",
            dependencies: [
                "FuzzSupport", "HTTPServer", "HTTP", "Posix", "Reactor", "CNGHTTP2", "TLS",
                "LocalAuthority", "COpenSSL",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "LocalAuthorityTests", dependencies: ["LocalAuthority", "Posix", "COpenSSL"],
            swiftSettings: strict),
        .testTarget(
            name: "DurableStateTests",
            dependencies: [
                "FuzzSupport", "DurableState", "Posix",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "StoreTests",
            dependencies: [
                "FuzzSupport", "Store", "DurableState", "Posix", "Reactor", "Retention",
                "RetentionLab",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(name: "RetentionTests", dependencies: ["Retention"], swiftSettings: strict),
        .testTarget(
            name: "SharedStoreTests",
            dependencies: ["FuzzSupport", "SharedStore", "HTTP", "Numbers", "Posix", "URISyntax"],
            swiftSettings: strict),
        .testTarget(
            name: "RetentionLabTests",
            dependencies: ["AccessLogFormat", "Retention", "RetentionLab"],
            swiftSettings: strict),
        .testTarget(
            name: "LookaheadTests", dependencies: ["FuzzSupport", "Lookahead", "HLS", "URISyntax"],
            swiftSettings: strict),
        .testTarget(
            name: "UpstreamTests",
            dependencies: ["Upstream", "URISyntax", "HTTP", "Posix", "Reactor", "CCurl", "CLinux"],
            swiftSettings: strict),
        .testTarget(
            name: "RoutingTests", dependencies: ["Routing", "HLS", "HTTP", "URISyntax"],
            swiftSettings: strict),
        .testTarget(
            name: "CachePolicyTests",
            dependencies: ["FuzzSupport", "CachePolicy", "HLS", "HTTP", "Posix", "URISyntax"],
            swiftSettings: strict),
        .target(
            name: "FuzzSupport", path: "Tests/FuzzSupport", swiftSettings: strict),
        .testTarget(
            name: "ModelTests",
            dependencies: [
                "FuzzSupport", "URISyntax", "HTTP", "HLS", "Posix", "Reactor", "Routing",
                "DurableState", "Lookahead", "SharedStore", "Store", "Upstream", "Model", "Serving",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "LibraryTests",
            dependencies: [
                "FuzzSupport", "URISyntax", "HTTP", "HLS", "Posix", "Reactor", "Routing",
                "CachePolicy", "DurableState", "Store", "Model", "Library",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "OriginTests",
            dependencies: [
                "FuzzSupport", "URISyntax", "HTTP", "HLS", "Posix", "Reactor", "Routing",
                "CachePolicy", "DurableState", "Store", "Endless", "Upstream", "BucketClient",
                "Model", "SharedStore", "Origin",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ConsoleTests",
            dependencies: ["Console", "HTTP", "HTTPServer", "Posix", "Reactor", "Model"],
            swiftSettings: strict),
        // A table of windows over an empty store, for the tests of several libraries.
        .target(
            name: "TimeShiftSupport",
            dependencies: [
                "Posix", "Store", "Model", "TimeShifting",
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Tests/TimeShiftSupport", swiftSettings: strict),
        .testTarget(
            name: "TimeShiftingTests",
            dependencies: [
                "TimeShiftSupport", "URISyntax", "HTTP", "HLS", "Posix", "Routing", "CachePolicy",
                "Store", "Model", "Library", "TimeShifting",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "AheadTests",
            dependencies: [
                "FuzzSupport", "URISyntax", "HTTP", "Posix", "Lookahead", "DurableState", "Store",
                "SharedStore", "Model", "Library", "Ahead",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "ServingTests",
            dependencies: [
                "FuzzSupport", "TimeShiftSupport", "URISyntax", "HTTP", "HLS", "Posix", "Reactor",
                "Routing", "CachePolicy", "Store", "Upstream", "SharedStore", "Model", "Library",
                "Playlists", "TimeShifting", "Serving",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "DiagnosisTests", dependencies: ["Diagnosis", "HLS", "HTTP", "URISyntax"],
            swiftSettings: strict),
        .testTarget(
            name: "DaemonServiceTests",
            dependencies: [
                "DaemonService", "CommandSupport", "Model", "Posix", "Serving", "URISyntax",
                "Upstream",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "BenchTests",
            dependencies: [
                "Bench", "Cost", "ScenarioSupport", "FixtureCDN", "sluice", "sample-cdn",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),
        // Stories and players go through the programs, which they depend on only to have them built.
        .testTarget(
            name: "PlaybackStories",
            dependencies: [
                "AccessLogFormat", "ScenarioSupport", "FixtureCDN", "sluice", "sample-cdn",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "OperationStories",
            dependencies: [
                "AccessLogFormat", "CachePolicy", "ScenarioSupport", "FixtureCDN", "sluice",
                "sluice-lab",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "PlayerTests",
            dependencies: [
                "ScenarioSupport", "FixtureCDN", "HTTP", "URISyntax", "sluice", "sample-cdn",
            ],
            swiftSettings: strict),
        .testTarget(
            name: "FixtureCDNTests", dependencies: ["FixtureCDN", "ScenarioSupport"],
            swiftSettings: strict),
    ],
    swiftLanguageModes: [.v6]
)

// `make test-unit TARGET=HLS` builds the tests of one library and what is below them, nothing else;
// `make tsan` those of several and the daemon, `SLUICE_TARGET=Reactor,Store,sluice`: a name in lower
// case is that of a program.
if let names = Context.environment["SLUICE_TARGET"] {
    var wanted = Set(
        names.split(separator: ",").map {
            $0.first?.isLowercase == true ? String($0) : "\($0)Tests"
        })
    var packages: Set<String> = []
    for target in package.targets.reversed() where wanted.contains(target.name) {
        for dependency in target.dependencies {
            switch dependency {
            case .targetItem(let name, _), .byNameItem(let name, _): wanted.insert(name)
            case .productItem(_, let name, _, _): packages.formUnion([name].compactMap { $0 })
            @unknown default: break
            }
        }
    }
    package.targets.removeAll { !wanted.contains($0.name) }
    package.products = []
    package.dependencies.removeAll { dependency in
        guard case .sourceControl(_, let location, _) = dependency.kind else { return false }
        return !packages.contains { location.hasSuffix("/\($0)") }
    }
}
