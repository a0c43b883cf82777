import ArgumentParser

/// The options for players.
package struct PlayerOptions: ParsableArguments {
    package init() {}

    @Option(
        help:
            "Rate at which stored media is sent: off (no limit), line (the rate of recent transfers from its origin, so that adaptive players estimate the line and not the cache; no limit until one of 64 KiB or more has ended since the start, and while the origin is unreachable) or bytes per second, 10KB...1TB; default off.",
        completion: .list(["off", "line"]))
    var pace: String?

    @Option(
        help: ArgumentHelp(
            "Time that is kept of a live stream that is one endless body, for viewers to join and to fall behind, 5...600, or off to treat it as a file; default 30.",
            valueName: "SECONDS"))
    var liveWindow: String?

    @Option(
        help:
            "Most bytes that are kept of such a live stream, 4MB...1TB with suffix; default 64MB."
    )
    var liveWindowSize: String?

    @Option(help: "Maximum concurrent player connections, 1...1000000; default 20000.")
    var maxConnections: String?

    @Option(help: "Number of server threads, 1...64; default one per core, at most 4.")
    var loops: String?

    @Option(help: "Seconds for a player to send a complete request head, 1...300; default 10.")
    var headTimeout: String?

    @Option(help: "Seconds before an idle player connection is closed, 1...3600; default 75.")
    var idleTimeout: String?

    @Option(
        help:
            "Seconds without progress before a response to a player is aborted, 1...3600; a player that reads nothing has up to twice that, and up to ten minutes over HTTP/2 if its window is closed; default 60."
    )
    var writeTimeout: String?

    @Option(help: "Seconds for active responses to finish after SIGTERM, 0...3600; default 10.")
    var drainTimeout: String?

    @Option(
        help:
            "Seconds after SIGTERM in which players are still accepted while /api/health?ready answers 503, so that a load balancer leaves first, 0...3600; default 0."
    )
    var drainDelay: String?
}
