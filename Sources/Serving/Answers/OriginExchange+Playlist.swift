import CachePolicy
import HTTP
import HTTPServer
import Model
import Playlists
import Reactor
import Store

/// Playlists and HLS JSON texts in responses; `ServedTexts` makes their served form.
extension OriginExchange {
    /// Returns a stored text as this request may be served it.
    func servable(_ object: StoredObject, _ facts: ObjectFacts) -> ServableText {
        ServableText(resource: resource, object: object, facts: facts, cut: progress.offline?.cut)
    }

    /// True if a playlist was fetched by another session and must not be shared.
    ///
    /// Origins mark playlists made for one viewer, for example with advertisements, with `private`
    /// or `no-store`; the segments that they name are shared. A playlist that this session has
    /// already received is its own.
    func belongsToAnotherViewer(_ facts: ObjectFacts) -> Bool {
        facts.head.isPlaylist && facts.isPerViewer
            && !resource.isKept(for: resource.session) && !texts.isKnown(facts, to: resource)
    }

    /// Sends a rewritten playlist or JSON text: always whole, whatever range was requested.
    func servePlaylist(
        _ playlist: PreparedPlaylist, of object: StoredObject, _ facts: ObjectFacts, _ how: Serving
    ) {
        guard playlist.bytes.count >= Gzip.worthwhile, ContentCoding.acceptsGzip(request.fields)
        else { return send(playlist, coded: nil, facts, how) }
        texts.compress(playlist, of: servable(object, facts)) { [self] coded in
            send(playlist, coded: coded, facts, how)
        }
    }

    /// Sends a text, in its gzip form if there is one.
    private func send(
        _ playlist: PreparedPlaylist, coded: PreparedPlaylist?, _ facts: ObjectFacts,
        _ how: Serving
    ) {
        let builder = AnswerHead(
            request: request, resource: resource, core: core, now: exchange.loop.wallNow)
        let bytes = (coded ?? playlist).bytes
        let isCoded = coded != nil
        keepForRepetition(facts, how, playlist: playlist, content: .text(bytes)) { now, how in
            builder.at(now).textHead(facts, of: playlist.facts, isCompressed: isCoded, how)
        }
        var head = builder.textHead(facts, of: playlist.facts, isCompressed: isCoded, how)
        noteCompleteness(in: &head.fields)
        deliver(bytes, head, how)
    }

    /// Sends a text.
    func deliver(_ text: [UInt8], _ head: ResponseHead, _ how: Serving) {
        countBytes(how)
        exchange.respond(head, body: .bytes(text))
    }
}
