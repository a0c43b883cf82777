import Model

extension DaemonConfiguration {
    /// Reads how players reach the daemon, as its links are written for them.
    mutating func readLinks(_ reader: inout SettingsReader) {
        if let path = reader.text("base-path"), !path.isEmpty, path != "/" {
            if ProxySettings.isBasePath(path) {
                proxy.basePath = path.hasSuffix("/") ? String(path.dropLast()) : path
            } else {
                reader.fault(
                    "base-path is a path such as /hls, in characters that a URL's path may hold, not '\(path)'"
                )
            }
        }
        proxy.writesAbsoluteURLs = reader.isOn("absolute-urls")
        proxy.trustsForwarded = reader.isOn("trust-forwarded")
    }
}
