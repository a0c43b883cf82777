// The response with a rewritten playlist or HLS JSON text; `ServedTexts` makes its served form.
import HTTP
import HTTPServer
import Model
import Playlists
import Synchronization
import TimeShifting

/// One response with a text: always whole, whatever range was requested.
///
/// Bound to the loop of its exchange.
struct TextResponse {
    let responder: Responder
    let playlist: PreparedPlaylist
    let text: ServableText
    let how: Provenance

    /// Sends the text, in its gzip form if the client accepts that; possibly after this returns.
    func send(_ texts: ServedTexts) {
        guard playlist.bytes.count >= Gzip.worthwhile,
            ContentCoding.acceptsGzip(responder.request.fields)
        else { return send(playlist.bytes, isCompressed: false) }
        texts.compress(playlist, of: text) { [self] coded in
            send((coded ?? playlist).bytes, isCompressed: coded != nil)
        }
    }

    private func send(_ bytes: [UInt8], isCompressed: Bool) {
        responder.count(how.disposition)
        let (facts, list) = (text.facts, playlist.facts)
        responder.keepForRepetition(
            text.object, facts, how, playlist: playlist, content: .text(bytes)
        ) { heads, how in
            heads.textHead(facts, of: list, isCompressed: isCompressed, how)
        }
        var head = responder.heads.textHead(
            facts, of: list, isCompressed: isCompressed, how)
        noteCompleteness(in: &head.fields)
        responder.deliver(bytes, head, how)
    }

    /// Adds a notice if an extended window was requested but the playlist is complete.
    private func noteCompleteness(in fields: inout Fields) {
        let resource = responder.resource
        guard resource.session.shift.window != nil,
            let list = responder.core.timeShift.known(resource.url, of: resource.session),
            list.state.withLock({ $0.isComplete })
        else { return }
        fields.append(.cacheStatus, "sluice-window; detail=\"complete playlist, dvr ignored\"")
    }
}
