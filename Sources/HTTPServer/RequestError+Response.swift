import HTTP

extension RequestError {
    static let bodyTooLarge = RequestError(.contentTooLarge, "The request body is too large.")
    static let late = RequestError(.requestTimeout, "The request did not arrive in time.")

    /// The response that tells the client.
    var response: (head: ResponseHead, body: ResponseBody) {
        var head = ResponseHead(status: status)
        head.fields.append(.contentType, "text/plain; charset=utf-8")
        return (head, .bytes(Array("client error: \(reason)\n".utf8)))
    }
}
