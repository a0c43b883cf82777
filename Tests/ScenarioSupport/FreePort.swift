import FixtureCDN

/// A port of loopback on which nothing listens, for programs that cannot choose one themselves.
package func freePort(_ address: String = "127.0.0.1") throws -> UInt16 {
    let probe = FixtureCDN(address: address)
    try probe.start()
    defer { probe.stop() }
    return probe.port
}
