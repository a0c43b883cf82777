// Tells the cookies by which an origin may recognize a viewer from those of its infrastructure.
package import Posix
package import URISyntax

/// Decides whether cookies may identify a viewer to the application that makes playlists.
///
/// Load balancers, bot managers and the signed cookies of CDNs recognize clients too, but the
/// playlists behind them are the same for all.
package enum ViewerCookie {
    /// The beginnings of the names of cookies that select no content, in lower case.
    private static let ofInfrastructure = [
        // Load balancers: AWS, Google, Azure, F5, Citrix, HAProxy, Cloudflare, Imperva.
        "awsalb", "awselb", "gclb", "arraffinity", "applicationgatewayaffinity", "bigipserver",
        "nsc_", "serverid", "__cflb", "nlbi_",
        // Bot managers: Cloudflare, Imperva, Akamai, F5, DataDome.
        "__cf_bm", "__cfruid", "__cfduid", "_cfuvid", "cf_clearance", "incap_ses_",
        "visid_incap_", "ak_bmsc", "bm_", "_abck", "ts01", "datadome",
        // Authorization at a CDN: CloudFront, Google, Akamai.
        "cloudfront-", "cloud-cdn-cookie", "edge-cache-cookie", "hdnea", "__hdnea__", "hdntl",
        "hdnts",
    ]

    /// Tells whether a response set a cookie that may identify the viewer.
    ///
    /// - Parameters:
    ///   - field: the value of a Set-Cookie field.
    ///   - url: the URL of the response.
    ///   - now: the time by the clock of the origin; expired cookies are removals.
    /// - Returns: true if a jar accepts it, and its name is not one of infrastructure.
    package static func isSet(by field: String, from url: AbsoluteURL, now: WallTime) -> Bool {
        guard identifies(field) else { return false }
        var jar = CookieJar()
        jar.receive(field, from: url, now: Monotonic(nanoseconds: 0), date: now)
        return !jar.isEmpty
    }

    /// True if a Cookie field of a request has a cookie that may identify the viewer.
    package static func isAny(in field: String) -> Bool {
        field.split(separator: ";").contains { identifies($0) }
    }

    /// True unless a cookie, or the value of a Set-Cookie field, begins with a name of
    /// infrastructure.
    package static func identifies(_ pair: some StringProtocol) -> Bool {
        let name = ASCII.lowercased(pair.prefix { $0 != "=" }.drop { $0 == " " || $0 == "\t" })
        return !name.isEmpty && !ofInfrastructure.contains { name.hasPrefix($0) }
    }
}
