// Redirects are followed here and not by libcurl, so that the next URL keeps its bytes, every hop
// passes the policy, and credentials stay with their origin.
package import HTTP
package import URISyntax

/// A redirect that is about to be followed (RFC 9110 section 15.4).
package struct Redirect: Sendable {
    package let status: HTTPStatus
    /// Without user information.
    package let from: AbsoluteURL
    /// May have user information, which the next request is sent with.
    package let to: AbsoluteURL
    /// The Set-Cookie fields of this response.
    package let setCookies: [ReceivedCookie]
    /// True if `to` has another scheme, host or port than `from`.
    package let isCrossOrigin: Bool
    /// True if this redirect or an earlier one of the chain led to another origin: what the request
    /// was given for its own origin is then meant for none of the later hops, even if one leads
    /// back.
    package let hasLeftOrigin: Bool
}

/// One request of a chain of redirects.
struct Hop {
    /// Without user information, which is in `fields`.
    private(set) var url: AbsoluteURL
    var method: HTTPMethod
    var fields: Fields
    var body: [UInt8]
    var redirects = 0
    /// True once a redirect has led to another origin; stays true if a later one leads back.
    private(set) var hasLeftOrigin = false
    /// True once Authorization was made from user information, which that of a later URL replaces.
    private var isAuthorizedByURL = false
    /// Fields for the first origin alone.
    private let originFields: Fields
    /// The fields that these replace.
    private var replacedFields = Fields()

    init(_ request: TransferRequest) {
        url = request.url
        method = request.method
        fields = request.fields
        originFields = request.originFields
        body = request.body
        // All are removed first: of two with one name, neither replaces the other.
        for (name, _) in originFields {
            for replaced in fields.all(name) { replacedFields.append(name, replaced) }
            fields.remove(name)
        }
        fields.append(contentsOf: originFields)
        takeUserinfo()
    }

    /// Moves user information from the URL to Authorization, for this hop and the next ones of its
    /// origin; a field that the request was given takes precedence.
    private mutating func takeUserinfo() {
        guard let userinfo = url.userinfo else { return }
        url = url.withoutUserinfo
        guard isAuthorizedByURL || !fields.contains(.authorization) else { return }
        let plain = PercentCoding.decode(Array(userinfo.utf8)[...])
        let pair = plain.contains(0x3A) ? plain : plain + [0x3A]
        fields.set(.authorization, "Basic " + Base64.encode(pair))
        isAuthorizedByURL = true
    }

    /// True for a GET without content.
    var isPlainGet: Bool { method == .get && body.isEmpty }

    /// The next step after a response.
    enum Step {
        /// The response is final.
        case final
        case follow(AbsoluteURL)
        case fail(UpstreamError.Kind)
    }

    /// Returns the next step after a response to this hop.
    func step(after status: HTTPStatus, _ fields: Fields, limit: Int) -> Step {
        guard status.isRedirect, let location = fields.valueBytes(.location), !location.isEmpty
        else { return .final }
        guard redirects < limit else { return .fail(.tooManyRedirects) }
        do throws(URIError) {
            return .follow(try URLResolver(base: url).resolve(location))
        } catch {
            if case .schemeNotAllowed = error { return .fail(.forbiddenScheme) }
            return .fail(.protocolError)
        }
    }

    /// Changes this hop into the next request of the chain.
    ///
    /// Cookie, Authorization and the fields of the first origin are dropped when the origin
    /// changes, and are not restored later; user information of the new URL becomes Authorization,
    /// as that of the first one did. A POST becomes a GET as in browsers (RFC 9110 sections 15.4.2
    /// to 15.4.4).
    mutating func follow(_ redirect: Redirect, cookie: String?) {
        url = redirect.to
        redirects += 1
        let becomesGet =
            redirect.status == .seeOther
            ? method != .head
            : method == .post
                && (redirect.status == .movedPermanently || redirect.status == .found)
        if becomesGet, method != .get {
            method = .get
            body = []
            fields.remove(.contentType)
            replacedFields.remove(.contentType)
        }
        if redirect.isCrossOrigin {
            if !hasLeftOrigin { dropOriginFields() }
            hasLeftOrigin = true
            fields.remove(.authorization)
            fields.remove(.cookie)
        }
        if let cookie {
            fields.remove(.cookie)
            if !cookie.isEmpty { fields.append(.cookie, cookie) }
        }
        takeUserinfo()
    }

    private mutating func dropOriginFields() {
        for (name, _) in originFields { fields.remove(name) }
        fields.append(contentsOf: replacedFields)
    }
}
