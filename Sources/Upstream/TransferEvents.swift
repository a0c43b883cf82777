// The events of a transfer: its head, its bytes, its end.
package import HTTP
import Numbers
package import Posix
package import URISyntax

/// Receives the events of one transfer, on the upstream loop's thread.
///
/// Order: `transferDidStart`, redirects, head, bytes, `didFinish`; a failure may come at any point.
/// Head and bytes are delivered from inside libcurl; all methods of `Transfer` and
/// `UpstreamClient.start` may be called there nevertheless, since what cannot happen inside libcurl
/// is deferred to the end of the loop's round.
package protocol TransferDelegate: AnyObject {
    /// A slot was granted and the request is sent now.
    ///
    /// Called once, whatever redirects follow.
    func transferDidStart(_ transfer: Transfer)

    /// The current hop's request is sent again, since a kept connection was closed.
    func transferIsRepeated(_ transfer: Transfer)

    /// A redirect is about to be followed.
    ///
    /// - Returns: The Cookie field value for the new URL, empty for none; nil keeps the request's
    ///   own within the same origin and sends none to another.
    func transfer(_ transfer: Transfer, willFollow redirect: Redirect) -> String?

    /// An interim (1xx) response; any number of them may precede the head.
    func transfer(_ transfer: Transfer, didReceiveInterim head: ResponseHead)

    /// The final response's head, whatever its status.
    func transfer(_ transfer: Transfer, didReceive head: TransferHead)

    /// Bytes of the body, at most 16 KiB, valid during the call only.
    func transfer(_ transfer: Transfer, didReceive bytes: UnsafeRawBufferPointer)

    /// Bytes of a body that nobody needs were read and discarded: of a redirect, or of a dismissed
    /// transfer.
    func transfer(_ transfer: Transfer, didDiscard count: Int)

    /// Called once at the end of each loop round in which a head or bytes arrived, and before
    /// `didFinish`: for writing collected bytes and waking readers.
    func transferRoundDidEnd(_ transfer: Transfer)

    /// Called exactly once at the end, never from inside another call of this client.
    func transfer(_ transfer: Transfer, didFinish result: TransferResult)
}

extension TransferDelegate {
    package func transferDidStart(_ transfer: Transfer) {}
    package func transferIsRepeated(_ transfer: Transfer) {}
    package func transfer(_ transfer: Transfer, willFollow redirect: Redirect) -> String? { nil }
    package func transfer(_ transfer: Transfer, didReceiveInterim head: ResponseHead) {}
    package func transfer(_ transfer: Transfer, didDiscard count: Int) {}
    package func transferRoundDidEnd(_ transfer: Transfer) {}
}

/// One Set-Cookie field and the URL whose response carried it.
package struct ReceivedCookie: Sendable, Hashable {
    package let url: AbsoluteURL
    /// The field's value as received.
    package let value: String
    /// The time by the clock of the origin, by which it means `Expires`; nil if it told none.
    package var date: WallTime?
}

/// The head of a final response.
package struct TransferHead: Sendable {
    package var status: HTTPStatus
    /// The response's fields in their order.
    ///
    /// If `decodedCoding` is set, Content-Encoding and Content-Length are removed, since they
    /// describe bytes that are not delivered.
    package var fields: Fields
    /// The content coding that is decoded before delivery; nil if bytes are delivered as received.
    package var decodedCoding: String?
    /// The URL that responded, after redirects, without user information.
    package var finalURL: AbsoluteURL
    /// The Set-Cookie fields of every hop in order, those of this response last.
    package var setCookies: [ReceivedCookie]
    /// True if a complete body can be distinguished from a truncated one: false for a body that is
    /// delimited by the end of the connection (RFC 9112 section 6.3, rule 8).
    package var provesItsEnd: Bool

    init(
        status: HTTPStatus, fields: Fields, decodedCoding: String? = nil, finalURL: AbsoluteURL,
        setCookies: [ReceivedCookie], provesItsEnd: Bool
    ) {
        self.status = status
        self.fields = fields
        self.decodedCoding = decodedCoding
        self.finalURL = finalURL
        self.setCookies = setCookies
        self.provesItsEnd = provesItsEnd
    }

    /// The head of a whole or partial body that no origin has sent now, with its length in
    /// `fields`.
    package init(status: HTTPStatus, kept fields: Fields, finalURL: AbsoluteURL) {
        self.init(
            status: status, fields: fields, finalURL: finalURL, setCookies: [], provesItsEnd: true)
    }

    /// Content-Length, 0 to 2^53 - 1; nil without one.
    package var contentLength: Int64? {
        fields.first(.contentLength).flatMap {
            ExternalNumber.integer($0, in: 0...Int64(ExternalNumber.largest))
        }
    }
}

/// How a transfer ended.
package enum TransferResult: Sendable {
    /// The whole body was delivered.
    case success(TransferTimings)
    case failure(UpstreamError)
}

/// The times of a transfer.
package struct TransferTimings: Sendable, Hashable {
    /// The last hop, up to its first byte.
    package var hop = HopTimes()
    /// From adding the last hop to libcurl until its first byte.
    package var firstByte: Interval = .zero
    /// From the granted slot to the end, over all hops.
    package var total: Interval = .zero
    /// Body bytes delivered, after decoding.
    package var bytes: Int64 = 0

    package init() {}
}
