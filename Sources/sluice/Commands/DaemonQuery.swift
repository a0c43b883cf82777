import URISyntax

/// Returns the query of a request to the daemon.
///
/// - Parameter arguments: names, which are written as they are, and values, which are
///   percent-encoded.
/// - Returns: what follows the question mark.
func daemonQuery(_ arguments: [(String, String)]) -> String {
    arguments.map { "\($0.0)=\(PercentCoding.queryComponent($0.1))" }.joined(separator: "&")
}
