// The S3 operations that the second level needs, as requests of libcurl with Signature Version 4.
package import HTTP
package import Posix
package import Reactor
package import SharedStore
import URISyntax
package import Upstream

/// Why an operation failed; holds no secret.
package enum BucketFailure: Error, Sendable, CustomStringConvertible {
    /// There is no such object.
    case missing
    /// The store answered with an error.
    case refused(status: Int, code: String?)
    case failed(UpstreamError)
    /// The answer is none of S3.
    case malformed

    /// True if other objects may be read all the same.
    package var isOfObject: Bool {
        switch self {
        case .missing: true
        case .refused(let status, _):
            400..<500 ~= status && ![401, 408, 429].contains(status) && !isOfBucket
        case .failed(let error): if case .tooLarge = error.kind { true } else { false }
        case .malformed: false
        }
    }

    /// True if a write of any other object would fail too: the store cannot be reached, has an
    /// error of its own, or refuses the credentials.
    package var isOfStore: Bool {
        switch self {
        // 501: it does not have the operation, such as uploads in parts.
        case .refused(501, _), .missing, .malformed: false
        // The code stands for the status, which was sent before the parts were put together.
        case .refused(200, let code):
            code.map(Self.codesOfStore.contains) == true || mayBeOfKeys || isOfBucket
        case .refused(let status, _):
            !(400..<500 ~= status) || [408, 429].contains(status) || mayBeOfKeys || isOfBucket
        case .failed(let error): if case .tooLarge = error.kind { false } else { true }
        }
    }

    /// True if the bucket does not exist.
    package var isOfBucket: Bool {
        if case .refused(_, Self.noBucket) = self { true } else { false }
    }

    private static let noBucket: String? = "NoSuchBucket"
    /// The codes of the statuses 5xx, 408 and 429.
    private static let codesOfStore: Set<String> = [
        "InternalError", "RequestTimeout", "ServiceUnavailable", "SlowDown",
    ]

    /// True if other credentials may change it: those in use have expired or were replaced, for
    /// instance.
    package var mayBeOfKeys: Bool {
        guard case .refused(let status, let code) = self else { return false }
        return status == 401 || status == 403
            || code == "ExpiredToken" || code == "InvalidToken" || code == "TokenRefreshRequired"
    }

    /// True if the store refuses one object alone, or does not tell whether it refuses all.
    package var mayBeRuleOfObject: Bool {
        guard case .refused(403, let code) = self else { return false }
        return code.map(Self.codesOfKeys.contains) != true
    }

    /// The codes of the status 403 that concern the credentials or the clock, and so all objects.
    private static let codesOfKeys: Set<String> = [
        "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
    ]

    package var description: String {
        switch self {
        case .missing: "there is no such object"
        case .refused(let status, let code): "the store answered \(status) \(code ?? "")"
        case .failed(let error): error.message
        case .malformed: "the answer is none of S3"
        }
    }

    /// The failure that an answer states; nil for success.
    package init?(_ status: HTTPStatus, _ body: [UInt8] = []) {
        guard !(200...299 ~= status.rawValue) else { return nil }
        let code = BucketAnswer.errorCode(body)
        if status == .notFound, code != Self.noBucket {
            self = .missing
        } else {
            self = .refused(status: Int(status.rawValue), code: code)
        }
    }
}

/// A bucket, on the upstream loop; has slots and connections of its own.
package final class BucketClient {
    package typealias Reply<Value> = (Result<Value, BucketFailure>) -> Void

    package let location: BucketLocation
    /// Replaced when the credentials file has others.
    package var keys: AccessKeys
    /// Called when an operation other than `get` fails, possibly because of the credentials.
    package var didRefuseKeys: (() -> Void)?
    /// Called when the answer to an operation other than `get` says that the bucket does not exist.
    package var didMissBucket: (() -> Void)?
    package let client: UpstreamClient

    /// The most requests at once; players' reads are among them.
    private static let slots = 64
    /// Answers other than objects are at most this long: a page of 1,000 names of 1 KiB.
    private static let largestAnswer: Int64 = 2 << 20

    /// Makes a client with the settings of `other`; opens no connection yet.
    ///
    /// The operator has named the endpoint, so that its address may be private, and `OnlyOrigins`
    /// does not apply.
    ///
    /// - Throws: `UpstreamError` when libcurl cannot start.
    package init(
        _ location: BucketLocation, keys: AccessKeys, loop: EventLoop, like other: UpstreamClient
    ) throws(UpstreamError) {
        self.location = location
        self.keys = keys
        var configuration = other.configuration
        configuration.slots = Self.slots
        configuration.perHostLimit = 0
        configuration.hostLimits = HostLimits()
        configuration.queueLimit = 4_096
        configuration.hasSlotOptions = false
        configuration.sessionFile = nil
        configuration.maxRedirects = 0
        configuration.addressPolicy = AddressPolicy(
            allowsPrivate: configuration.addressPolicy.allowsPrivate,
            allowedHosts: configuration.addressPolicy.allowedHosts.union([location.host]))
        configuration.onlyOrigins = OnlyOriginsInForce()
        client = try UpstreamClient(loop: loop, configuration: configuration, sharing: other)
    }

    // MARK: Requests

    private func request(
        _ method: HTTPMethod, _ url: AbsoluteURL, _ fields: Fields, lane: Lane
    ) -> TransferRequest {
        var request = TransferRequest(url: url, lane: lane)
        request.method = method
        request.fields = fields
        // libcurl before 8.0 does not add it by itself.
        if !request.fields.contains("x-amz-content-sha256") {
            request.fields.set("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
        }
        if let token = keys.token { request.fields.set("x-amz-security-token", token) }
        request.followsRedirects = false
        request.signature = RequestSignature(
            scope: "aws:amz:\(location.region):s3", user: keys.id, password: keys.secret)
        request.timeouts.connect = .seconds(2)
        return request
    }

    /// Sends a request and collects its answer.
    private func send(
        _ method: HTTPMethod, _ name: String?, query: [(name: String, value: String)] = [],
        fields: Fields = Fields(), body: [UInt8]? = nil, limit: Interval = .seconds(30),
        lane: Lane = .background, done: @escaping Reply<BucketReply>
    ) -> Transfer? {
        guard let url = location.url(of: name, query: query) else {
            done(.failure(.malformed))
            return nil
        }
        var request = request(method, url, fields, lane: lane)
        if let body {
            request.body = body
            if !request.fields.contains(.contentType) {
                request.fields.set(.contentType, "application/octet-stream")
            }
        }
        request.bodyLimit = Self.largestAnswer
        request.timeouts.firstByte = limit
        request.timeouts.stall = limit
        let mayBeMissing = name != nil && (method == .get || method == .delete)
        let exchange = BucketExchange { [weak self] result in
            guard case .failure(let failure) = result else { return done(result) }
            if failure.mayBeOfKeys { self?.didRefuseKeys?() }
            if failure.isOfBucket { self?.didMissBucket?() }
            if case .missing = failure, !mayBeMissing {
                return done(.failure(.refused(status: 404, code: nil)))
            }
            done(result)
        }
        return client.start(request, delegate: exchange)
    }

    // MARK: Objects

    /// Requests an object, or a range of it, whose bytes go to `delegate` as they come.
    ///
    /// - Parameters:
    ///   - name: the name after the prefix.
    ///   - bytes: the range; nil for all.
    ///   - lane: the lane.
    ///   - timeouts: the timeouts.
    ///   - trace: records the costs; nil if not needed.
    ///   - delegate: receives the answer, whatever its status.
    /// - Returns: nil for a name that makes no URL.
    package func get(
        _ name: String, bytes: ClosedRange<Int64>? = nil, lane: Lane,
        timeouts: TransferTimeouts, trace: TransferTrace? = nil, delegate: any TransferDelegate
    ) -> Transfer? {
        guard let url = location.url(of: name) else { return nil }
        var fields = Fields()
        if let bytes { fields.set(.range, "bytes=\(bytes.lowerBound)-\(bytes.upperBound)") }
        var request = request(.get, url, fields, lane: lane)
        request.timeouts = timeouts
        request.trace = trace
        return client.start(request, delegate: delegate)
    }

    /// Reads a small object whole.
    package func read(
        _ name: String, limit: Interval = .seconds(30), lane: Lane = .background,
        done: @escaping Reply<BucketReply>
    ) -> Transfer? {
        send(.get, name, limit: limit, lane: lane, done: done)
    }

    /// Writes an object, whole or not at all (PutObject).
    ///
    /// - Parameters:
    ///   - name: the name after the prefix.
    ///   - body: the bytes.
    ///   - hash: the SHA-256 digest of the body in hexadecimal digits, which the store compares; computed
    ///     by the caller, since it takes too long for a loop.
    ///   - isNew: true to write it only if there is no such object (`If-None-Match: *`); the store answers
    ///     412 or 409 if there is one, and 501 if it has no such condition.
    ///   - lane: the lane.
    ///   - done: called once, with the object's entity tag.
    /// - Returns: the transfer; nil for a name that makes no URL.
    package func put(
        _ name: String, _ body: [UInt8], hash: String, isNew: Bool = false,
        lane: Lane = .background, done: @escaping Reply<BucketReply>
    ) -> Transfer? {
        var fields = Fields()
        fields.set("x-amz-content-sha256", hash)
        if isNew { fields.set(.ifNoneMatch, "*") }
        return send(
            .put, name, fields: fields, body: body, limit: Self.uploadLimit, lane: lane, done: done)
    }

    private static let uploadLimit = Interval.seconds(60 as Int64)
    /// Longer than for one part: whoever gives up sends all parts once more.
    private static let completionLimit = Interval.seconds(600 as Int64)

    /// Removes an object (DeleteObject); one that does not exist is no failure.
    package func delete(_ name: String, done: @escaping Reply<BucketReply>) {
        _ = send(.delete, name) { result in
            if case .failure(.missing) = result { return done(.success(BucketReply())) }
            done(result)
        }
    }

    /// Lists the names that begin with a text (ListObjectsV2).
    ///
    /// - Parameters:
    ///   - start: the beginning after the prefix.
    ///   - token: where the page starts; nil for the first one.
    ///   - name: a name after the prefix that the first page begins behind; nil for all names.
    ///   - done: called once.
    package func list(
        _ start: String, from token: String? = nil, after name: String? = nil,
        done: @escaping Reply<BucketListing>
    ) {
        var query = [
            ("list-type", "2"), ("max-keys", "\(BucketListing.mostObjects)"),
            ("prefix", location.prefix + start),
        ]
        if let token {
            query.append(("continuation-token", token))
        } else if let name {
            query.append(("start-after", location.prefix + name))
        }
        _ = send(.get, nil, query: query) { result in
            done(
                result.flatMap { reply in
                    BucketListing(reply.body).map { .success($0) } ?? .failure(.malformed)
                })
        }
    }

    // MARK: Objects in parts

    /// Begins an upload in parts (CreateMultipartUpload).
    ///
    /// - Parameters:
    ///   - name: the name after the prefix.
    ///   - done: called once, with the number of the upload.
    package func beginUpload(_ name: String, done: @escaping Reply<String>) {
        _ = send(.post, name, query: [("uploads", "")], body: []) { result in
            done(
                result.flatMap { reply in
                    BucketAnswer.uploadID(reply.body).map { .success($0) } ?? .failure(.malformed)
                })
        }
    }

    /// Writes a part, whose number is at least 1 (UploadPart).
    package func putPart(
        _ name: String, of upload: String, number: Int, _ body: [UInt8], hash: String,
        done: @escaping Reply<BucketReply>
    ) {
        var fields = Fields()
        fields.set("x-amz-content-sha256", hash)
        _ = send(
            .put, name, query: [("partNumber", "\(number)"), ("uploadId", upload)],
            fields: fields, body: body, limit: Self.uploadLimit, done: done)
    }

    /// Makes the object of its parts (CompleteMultipartUpload).
    ///
    /// The store may answer 200 and an error in the text, and may need minutes for many parts.
    package func completeUpload(
        _ name: String, of upload: String, tags: [String], done: @escaping Reply<BucketReply>
    ) {
        let body = BucketAnswer.completion(tags: tags)
        var fields = Fields()
        fields.set(.contentType, "application/xml")
        _ = send(
            .post, name, query: [("uploadId", upload)], fields: fields, body: body,
            limit: Self.completionLimit
        ) { result in
            done(
                result.flatMap { reply in
                    guard let code = BucketAnswer.errorCode(reply.body) else {
                        return .success(reply)
                    }
                    return .failure(.refused(status: 200, code: code))
                })
        }
    }

    /// Removes the parts of an upload that is not completed (AbortMultipartUpload).
    package func abortUpload(_ name: String, of upload: String) {
        _ = send(.delete, name, query: [("uploadId", upload)]) { _ in }
    }

    /// Ends all requests.
    package func shutdown() { client.shutdown() }
}

/// The answer to an operation.
package struct BucketReply: Sendable {
    package var fields = Fields()
    package var body: [UInt8] = []

    /// The object's entity tag with its quotes; nil if the store gave none.
    package var tag: String? { fields.first(.etag) }

    package init() {}
}

/// Collects one answer, whose length the request limits.
private final class BucketExchange: TransferDelegate {
    private let done: BucketClient.Reply<BucketReply>
    private var head: TransferHead?
    private var body: [UInt8] = []

    init(_ done: @escaping BucketClient.Reply<BucketReply>) { self.done = done }

    func transfer(_ transfer: Transfer, didReceive head: TransferHead) { self.head = head }

    func transfer(_ transfer: Transfer, didReceive bytes: UnsafeRawBufferPointer) {
        body += bytes
    }

    func transfer(_ transfer: Transfer, didFinish result: TransferResult) {
        if case .failure(let error) = result { return done(.failure(.failed(error))) }
        guard let head else { return done(.failure(.malformed)) }
        if let failure = BucketFailure(head.status, body) { return done(.failure(failure)) }
        var reply = BucketReply()
        reply.fields = head.fields
        reply.body = body
        done(.success(reply))
    }
}
