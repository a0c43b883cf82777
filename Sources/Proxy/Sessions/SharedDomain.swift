/// Domains under which strangers have names of their own, for which no cookie may be set.
///
/// A rule of thumb in place of the Public Suffix List, which is 300 kB and changes weekly: a name
/// of one label; a usual second level below a country; a service that gives each customer a name.
/// A domain that the rule misses lets two customers of one service see cookies that one of them
/// set for all, within one session only.
enum SharedDomain {
    private static let secondLevels: Set<Substring> = [
        "ac", "co", "com", "ed", "edu", "go", "gob", "gov", "gv", "id", "ltd", "me", "mil", "ne",
        "net", "nom", "or", "org", "plc", "sch", "web",
    ]

    private static let services: Set<String> = [
        "akamaihd.net", "akamaized.net", "amazonaws.com", "appspot.com", "azureedge.net",
        "azurefd.net", "b-cdn.net", "backblazeb2.com", "blob.core.windows.net", "bunnycdn.com",
        "cdn77.org", "cloudflarestream.com", "cloudfront.net", "digitaloceanspaces.com",
        "edgekey.net", "edgesuite.net", "fastly.net", "firebaseapp.com", "fly.dev", "github.io",
        "gitlab.io", "herokuapp.com", "llnwd.net", "netlify.app", "onrender.com", "pages.dev",
        "r2.dev", "storage.googleapis.com", "vercel.app", "web.app", "workers.dev",
    ]

    /// Whether strangers share `domain`, which is in lower case and has no dot at its ends.
    static func covers(_ domain: String) -> Bool {
        let labels = domain.split(separator: ".")
        guard labels.count > 1, let top = labels.last else { return true }
        if labels.count == 2, top.utf8.count == 2, secondLevels.contains(labels[0]) { return true }
        return services.contains(domain)
    }
}
