//! Text out of JSON: journals, containers' logs, lists of lines.

use serde_json::Value;

/// Members that hold a log's own line: of journald, of containers, of log collectors.
const MESSAGES: [&str; 5] = ["MESSAGE", "log", "message", "msg", "text"];

/// Values nested deeper are left alone.
const DEPTH: u32 = 16;

/// The lines of text in a line that is JSON, or one member of it; `None` when it is none.
pub fn lines(line: &str) -> Option<Vec<String>> {
    let text = line.trim();
    if !text.starts_with(['{', '[', '"']) {
        return None;
    }
    let text = text.trim_end_matches(',');
    let value = serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&format!("{{{text}}}")))
        .ok()?;
    if let Value::Array(list) = &value
        && !list
            .iter()
            .any(|item| item.is_string() || item.is_object() || item.is_array())
    {
        return None; // `[0]` is no list of lines
    }
    let mut out = Vec::new();
    collect(&value, DEPTH, &mut out);
    Some(out)
}

fn collect(value: &Value, depth: u32, out: &mut Vec<String>) {
    if depth == 0 {
        return;
    }
    match value {
        Value::String(text) => out.extend(text.split('\n').map(String::from)),
        Value::Array(list) => list.iter().for_each(|item| collect(item, depth - 1, out)),
        Value::Object(members) => {
            let message = MESSAGES.iter().find_map(|name| members.get(*name));
            match message {
                Some(Value::Array(bytes)) => out.extend(bytes_text(bytes)),
                Some(message) => collect(message, depth - 1, out),
                None => object(members, depth, out),
            }
        }
        _ => {}
    }
}

/// An object that is no log record: words become `name=value` on one line, as in
/// `cpu=0 msr=0x2ff value=0xc06`.
fn object(members: &serde_json::Map<String, Value>, depth: u32, out: &mut Vec<String>) {
    let mut words = Vec::new();
    let mut rest = Vec::new();
    for (name, value) in members {
        match value {
            Value::String(text) if !text.trim().contains(char::is_whitespace) => {
                words.push(format!("{name}={text}"));
            }
            Value::Number(number) if name.to_ascii_lowercase().contains("cpu") => {
                words.push(format!("{name}={number}"));
            }
            Value::Number(number) => match number.as_u64() {
                Some(number) => words.push(format!("{name}={number:#x}")),
                None => words.push(format!("{name}={number}")),
            },
            other => rest.push((name, other)),
        }
    }
    if !words.is_empty() {
        out.push(words.join(" "));
    }
    for (name, value) in rest {
        // `"cpu0": {..}`: what follows belongs to it.
        if value.is_object() {
            out.push(format!("{name}:"));
        }
        collect(value, depth - 1, out);
    }
}

/// journald writes a message that is no UTF-8 as a list of bytes.
fn bytes_text(bytes: &[Value]) -> Option<String> {
    let bytes: Option<Vec<u8>> = bytes
        .iter()
        .map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok()))
        .collect();
    Some(String::from_utf8_lossy(&bytes?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn records_lists_and_members_become_lines() {
        for (line, want) in [
            (r#"{"MESSAGE":"MTRR map","_PID":"1"}"#, vec!["MTRR map"]),
            (r#"{"log":"a\nb","stream":"x"}"#, vec!["a", "b"]),
            (
                r#"  "MTRR default type: uncachable","#,
                vec!["MTRR default type: uncachable"],
            ),
            (r#"["a b","c\td"]"#, vec!["a b", "c\td"]),
            (r#""MESSAGE" : "reg00:","#, vec!["reg00:"]),
            (r#"{"MESSAGE":[77,84,82,82]}"#, vec!["MTRR"]),
            (
                r#"{"cpu":1,"msr":"0x2ff","value":3078}"#,
                vec!["cpu=1 msr=0x2ff value=0xc06"],
            ),
        ] {
            assert_eq!(lines(line).unwrap(), want, "{line}");
        }
        for line in [
            "[    0.000000] MTRR",
            "{ \"dmesg\": [",
            "[0]",
            "reg00: {}",
            "\"open",
        ] {
            assert_eq!(lines(line), None, "{line}");
        }
    }
}
