//! An upstream against origins made of raw sockets, one behaviour each.
