{"url":"https://a.example/1","time":1767225600.5,"price":5.0,"title":"x"}
{"url":"https://a.example/1","time":"2026-01-01T12:00:00+02:00","price":["6"],"tags":["a"]}
