import CCurl

/// Turns the way to an origin into libcurl's options.
extension CurlEasy {
    /// Sets the way; `caFile` is what holds for origins without their own.
    ///
    /// Proxies and exceptions from them that the environment names are never used: they are not the
    /// daemon's settings, and an exception would lead past the proxy that the configuration asks for.
    func setRoute(_ route: OriginRoute, caFile: String?) {
        set(CURLOPT_PROXY, route.proxy?.address ?? "")
        set(CURLOPT_NOPROXY, "")
        if let proxy = route.proxy {
            set(CURLOPT_SUPPRESS_CONNECT_HEADERS, flag: true)
            if let user = proxy.user, let password = proxy.password {
                set(CURLOPT_PROXYUSERNAME, user)
                set(CURLOPT_PROXYPASSWORD, password)
            }
            if let caFile {
                set(CURLOPT_PROXY_CAINFO, caFile)
                clear(CURLOPT_PROXY_CAPATH)
            }
        }
        if let file = route.caFile ?? caFile {
            set(CURLOPT_CAINFO, file)
            // Some libcurls were built with a folder of certificates that they would trust as well.
            clear(CURLOPT_CAPATH)
        }
        if let certificate = route.certificate {
            set(CURLOPT_SSLCERT, certificate.certificate)
            set(CURLOPT_SSLKEY, certificate.key)
        }
        if let interface = route.interface { set(CURLOPT_INTERFACE, interface.option) }
        if let pins = route.pins { set(CURLOPT_PINNEDPUBLICKEY, pins.description) }
    }
}
