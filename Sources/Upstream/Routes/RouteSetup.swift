import CCurl
package import URISyntax

// Sets libcurl's options for a route to an origin.

extension OriginRoute {
    /// Sets the route on an easy handle; `caFile` applies to origins without their own.
    ///
    /// Proxy settings in the environment are never used: they are not the daemon's settings, and an
    /// exception there would bypass the configured proxy.
    func set(on handle: UnsafeMutableRawPointer, caFile: String?) {
        func set(_ option: CURLoption, _ value: String?) {
            CurlEasy.require(option, sluice_curl_set_string(handle, option, value))
        }
        set(CURLOPT_PROXY, proxy?.address ?? "")
        set(CURLOPT_NOPROXY, "")
        if let proxy {
            CurlEasy.require(
                CURLOPT_SUPPRESS_CONNECT_HEADERS,
                sluice_curl_set_long(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1))
            if let user = proxy.user, let password = proxy.password {
                set(CURLOPT_PROXYUSERNAME, user)
                set(CURLOPT_PROXYPASSWORD, password)
            }
            if let caFile {
                set(CURLOPT_PROXY_CAINFO, caFile)
                set(CURLOPT_PROXY_CAPATH, nil)
            }
        }
        if let file = self.caFile ?? caFile {
            set(CURLOPT_CAINFO, file)
            // Some libcurls were built with a folder of certificates that they would trust too.
            set(CURLOPT_CAPATH, nil)
        }
        if let certificate {
            set(CURLOPT_SSLCERT, certificate.certificate)
            set(CURLOPT_SSLKEY, certificate.key)
        }
        if let interface { set(CURLOPT_INTERFACE, interface.option) }
        if let pins { set(CURLOPT_PINNEDPUBLICKEY, pins.description) }
    }

    /// The entry of CURLOPT_RESOLVE(3) with the configured addresses; nil without any.
    func resolved(_ origin: Origin) -> String? {
        let list = addresses.map(\.option).joined(separator: ",")
        return list.isEmpty ? nil : "\(origin.host):\(origin.port):\(list)"
    }

    /// The settings that make up the route, without passwords; empty for the plain route.
    package var summary: String {
        var parts: [String] = []
        if let proxy { parts.append("through \(proxy)") }
        if let interface { parts.append("from \(interface)") }
        if !addresses.isEmpty {
            parts.append("at \(addresses.map(\.description).joined(separator: ", "))")
        }
        if let caFile { parts.append("trusting \(caFile)") }
        if let certificate { parts.append("with the certificate \(certificate.certificate)") }
        if pins != nil { parts.append("with pinned keys") }
        return parts.joined(separator: ", ")
    }
}

/// A request that a command sends outside of the daemon, on the ways of the daemon.
package final class CommandRoute {
    private var resolved: UnsafeMutablePointer<curl_slist>?

    /// Sets route, trust, fixed addresses and DNS server for a URL on an easy handle.
    ///
    /// It must live until the transfer has ended, as libcurl refers to its memory.
    package init(
        to url: AbsoluteURL, on handle: UnsafeMutableRawPointer,
        _ configuration: UpstreamConfiguration
    ) {
        let route = configuration.routes.route(to: url.origin)
        route.set(on: handle, caFile: configuration.caFile)
        let entries = configuration.resolve + [route.resolved(url.origin)].compactMap { $0 }
        for entry in entries { resolved = curl_slist_append(resolved, entry) }
        if resolved != nil {
            CurlEasy.require(
                CURLOPT_RESOLVE, sluice_curl_set_list(handle, CURLOPT_RESOLVE, resolved))
        }
        if let server = configuration.dohURL {
            CurlEasy.require(
                CURLOPT_DOH_URL, sluice_curl_set_string(handle, CURLOPT_DOH_URL, server))
        }
    }

    deinit { curl_slist_free_all(resolved) }
}
