/// How the daemon's own log is written.
package enum LogFormat: String, Sendable {
    /// A line for people.
    case text
    /// A JSON object a line.
    case json
}
