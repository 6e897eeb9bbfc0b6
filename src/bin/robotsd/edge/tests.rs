//! The edge on real sockets, before services made for each question.
