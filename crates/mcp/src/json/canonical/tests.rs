//! The canonical form, with the examples of RFC 8785.

use super::canonical;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(canonical(text).as_deref(), Ok(expected), "{text}");
}

#[track_caller]
fn check_bits(bits: u64, expected: &str) {
    check(&format!("{:e}", f64::from_bits(bits)), expected);
}

#[test]
fn example_of_the_rfc_is_written_as_it_says() {
    // Section 3.2.2 and 3.2.4.
    check(
        r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#,
        "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
         \"string\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}",
    );
}

#[test]
fn members_are_sorted_by_their_utf16_units() {
    // Section 3.2.3.
    check(
        r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh",
            "1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control",
            "\u00f6":"Latin Small Letter O With Diaeresis"}"#,
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
         \"\u{f6}\":\"Latin Small Letter O With Diaeresis\",\"\u{20ac}\":\"Euro Sign\",\
         \"\u{1f600}\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
    );
}

#[test]
fn numbers_are_written_as_in_ecmascript() {
    // Appendix B.
    for (bits, expected) in [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        check_bits(bits, expected);
    }
}

#[test]
fn texts_that_say_the_same_have_one_form() {
    for text in [
        r#"{"a":1,"b":[{"d":"x","c":2}]}"#,
        " {\"b\":[ {\"c\":2.0,\"d\":\"\\u0078\"}],\n\"a\":1e0} ",
    ] {
        check(text, r#"{"a":1,"b":[{"c":2,"d":"x"}]}"#);
    }
    check("[]", "[]");
    check("{}", "{}");
}

#[test]
fn what_readers_could_disagree_on_has_none() {
    for (text, fault) in [
        (r#"{"a":1,"\u0061":2}"#, "not valid JSON: member \"a\" is there twice"),
        ("1e400", "not valid JSON: the number 1e400 is too large"),
        (r#""\ud800""#, "not valid JSON: the string \"\\ud800\" has no meaning"),
        ("[1,]", "not valid JSON: expected value at line 1 column 4"),
        ("[1] 2", "not valid JSON: trailing characters at line 1 column 5"),
    ] {
        assert_eq!(canonical(text).unwrap_err().to_string(), fault, "{text}");
    }
    let deep = "[".repeat(129) + &"]".repeat(129);
    assert_eq!(canonical(&deep).unwrap_err().to_string(), "nested deeper than 128 levels");
}
