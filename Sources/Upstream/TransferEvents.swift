// What a transfer tells: its head, its bytes, its end.
package import HTTP
import Numbers
package import Posix
package import URISyntax

/// Told about one transfer, on the upstream loop's thread.
///
/// Order: `transferDidStart`, redirects, head, bytes, `didFinish`; a failure may come at any place.
/// Head and bytes are delivered from inside libcurl; every method of `Transfer` and
/// `UpstreamClient.start` may be called there all the same, for what cannot happen inside libcurl
/// is put off to the end of the loop's round.
package protocol TransferDelegate: AnyObject {
    /// A slot was granted and the request goes out now. Called once, redirects or not.
    func transferDidStart(_ transfer: Transfer)

    /// The present hop's request is sent once more, since a kept connection had ended.
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
    func transfer(_ transfer: Transfer, didReceive bytes: UnsafeRawBufferPointer) -> BodyVerdict

    /// Called once at the end of each loop round in which a head or bytes arrived, and before
    /// `didFinish`: the place to write gathered bytes and wake readers.
    func transferRoundDidEnd(_ transfer: Transfer)

    /// The end, told exactly once, never from inside another call of this client.
    func transfer(_ transfer: Transfer, didFinish result: TransferResult)
}

extension TransferDelegate {
    package func transferDidStart(_ transfer: Transfer) {}
    package func transferIsRepeated(_ transfer: Transfer) {}
    package func transfer(_ transfer: Transfer, willFollow redirect: Redirect) -> String? { nil }
    package func transfer(_ transfer: Transfer, didReceiveInterim head: ResponseHead) {}
    package func transferRoundDidEnd(_ transfer: Transfer) {}
}

/// What becomes of bytes that were offered.
package enum BodyVerdict: Sendable, Hashable {
    /// They were taken.
    case consumed
    /// They were not taken: they are offered again after `Transfer.resume`. To take them and then
    /// pause, call `Transfer.pause` and answer `consumed`.
    case pause
}

/// One Set-Cookie field and the URL whose response carried it.
package struct ReceivedCookie: Sendable, Hashable {
    package let url: AbsoluteURL
    /// The field's value as it came.
    package let value: String
}

/// The head of a final response.
package struct TransferHead: Sendable {
    package var status: HTTPStatus
    package var version: HTTPVersion
    /// The response's fields in their order.
    ///
    /// Where `decodedCoding` is set, Content-Encoding and Content-Length are taken out, since they
    /// describe bytes that are not delivered.
    package var fields: Fields
    /// The content coding that is undone before delivery; nil where bytes come as they are.
    package var decodedCoding: String?
    /// The URL that answered, after redirects, without user information.
    package var finalURL: AbsoluteURL
    /// The peer that answered.
    package var remoteAddress: SocketAddress?
    /// The Set-Cookie fields of every hop in order, those of this response last.
    package var setCookies: [ReceivedCookie]
    /// How many redirects led here.
    package var redirects: Int
    /// Whether a complete body can be told from a cut one: false for a body that ends when the
    /// connection closes (RFC 9112 section 6.3, rule 8).
    package var provesItsEnd: Bool

    /// Content-Length, 0 to 2^53 - 1; nil without one.
    package var contentLength: Int64? {
        fields.first(.contentLength).flatMap {
            OutsideNumber.integer($0, in: 0...Int64(OutsideNumber.largest))
        }
    }
}

/// How a transfer ended.
package enum TransferResult: Sendable {
    /// The whole body was delivered.
    case success(TransferTimings)
    case failure(UpstreamError)
}

/// What a transfer took.
package struct TransferTimings: Sendable, Hashable {
    /// The last hop, up to its first byte.
    package var hop = HopTimes()
    /// From the handing over of the last hop to its first byte.
    package var firstByte: Interval = .zero
    /// From the granted slot to the end, all hops.
    package var total: Interval = .zero
    /// Body bytes delivered, after decoding.
    package var bytes: Int64 = 0

    package init() {}
}
