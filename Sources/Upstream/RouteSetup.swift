import CCurl

/// Sets libcurl's options for a route to an origin.
extension CurlEasy {
    /// Sets the route; `caFile` applies to origins without their own.
    ///
    /// Proxy settings in the environment are never used: they are not the daemon's settings, and an
    /// exception there would bypass the configured proxy.
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
            // Some libcurls were built with a folder of certificates that they would trust too.
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
