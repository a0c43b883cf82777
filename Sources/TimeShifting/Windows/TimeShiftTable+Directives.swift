import HLS
package import HTTP
package import Model
import Numbers
package import URISyntax

extension TimeShiftTable {
    /// Returns delivery directives as the origin gets them: those that apply in the session, with
    /// the origin's numbers (8216bis, 6.2.5.2).
    package func translated(
        _ directives: [QueryItem], for url: AbsoluteURL, _ session: Session
    ) -> [QueryItem] {
        guard session.isShifted, !directives.isEmpty else { return directives }
        let directives = session.directives(of: directives)
        guard let list = known(url, of: session) else { return directives }
        let shift = list.shift
        return directives.map { item in
            guard item.rawName == "_HLS_msn",
                let number = item.rawValue.flatMap({
                    ExternalNumber.integer($0, in: 0...ExternalNumber.largest)
                })
            else { return item }
            return QueryItem(rawName: item.rawName, rawValue: "\(shift.originNumber(of: number))")
        }
    }
}

extension Session {
    /// Returns those delivery directives of a request that apply in the session.
    ///
    /// An extended window is a whole list in any case. A delta update of the origin cannot begin
    /// one: what it leaves out has the keys and the initialization section of its first segments.
    package func directives(of asked: [QueryItem]) -> [QueryItem] {
        isShifted ? asked.filter { $0.rawName != "_HLS_skip" } : asked
    }
}
